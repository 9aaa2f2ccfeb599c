"""How a check that follows a run tells other programs how far it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from traincheck_check.commands.announcing import Announcing
from traincheck_check.judging.claims import Claims
from traincheck_check.judging.exit_code import Threshold
from traincheck_check.judging.following import Following, Waiting
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.progress_file import read_progress

if TYPE_CHECKING:
    from conftest import WriteRun

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.progress import Progress

CUT = 20  # lines of the run that are there at first; nothing is broken in them


@attrs.define
class Followed:
    """A run that is followed, of which the lines are given out bit by bit."""

    lines: list[str]
    shard: Path
    following: Following
    announcing: Announcing
    path: Path
    now: list[float]

    def give(self, lines: int | None = None) -> Progress:
        """Let so many lines be there, judge them, and read what is told then."""
        self.shard.write_text("".join(self.lines[:lines]))
        for _ in self.following.advance():
            pass
        self.announcing.announce()
        return read_progress(self.path)


@pytest.fixture
def follow(write_run: WriteRun, claims: tuple[Invariant, ...], tmp_path: Path) -> Any:
    def begin(*, known: bool = False, limits: Threshold | None = None, **run: Any) -> Followed:
        (whole,) = write_run("whole", **run).glob("trace_*")
        folder = tmp_path / "growing"
        folder.mkdir()
        now = [0.0]
        found = Claims.of(claims)
        if known:
            found = attrs.evolve(found, known={each.id: "known" for each in claims})
        following = Following(Waiting(paths=(folder,)), found)
        path = tmp_path / "progress.json"
        announcing = Announcing(path, following, limits or Threshold(), lambda: now[0])
        announcing.begin()
        lines = whole.read_text().splitlines(keepends=True)
        return Followed(lines, folder / whole.name, following, announcing, path, now)

    return begin


def test_a_check_says_that_it_is_there(follow: Any) -> None:
    """Before there is a run; by then nobody has to guess whether it will come."""
    progress = read_progress(follow().path)

    assert (progress.run_id, progress.running, progress.processes) == (None, True, ())
    assert progress.pid == os.getpid()


def test_what_was_judged_is_told(follow: Any) -> None:
    """The last record of each process, and how much of its file was there."""
    run = follow()

    progress = run.give(CUT)

    (process,) = progress.processes
    last = [line for line in run.lines[:CUT] if '"seq"' in line][-1]
    assert f'"seq":{process.seq},' in last.replace(" ", "")
    assert process.shard == run.shard.name
    assert process.size == run.shard.stat().st_size
    assert not process.ended
    assert progress.awaited == (0,)

    (process,) = run.give().processes
    assert process.ended
    assert process.step == 5


def test_it_is_written_when_something_is_new_and_every_second(follow: Any) -> None:
    """Who waits knows so that the check goes on."""
    run = follow()
    first = run.give(CUT).beat

    assert run.give(CUT).beat == first
    run.now[0] += 1.1
    assert run.give(CUT).beat == first + 1
    assert run.give(CUT + 4).beat == first + 2


def test_what_makes_the_check_fail_is_told(follow: Any) -> None:
    """As soon as it is judged, and not before."""
    run = follow(stuck=("model.fc2.weight",), since=2)
    assert not run.give(CUT).fails

    progress = run.give()

    assert progress.fails
    assert progress.violations == run.following.violations > 0


@pytest.mark.parametrize(
    "options",
    [{"known": True}, {"limits": Threshold(exit_zero=True)}, {"limits": Threshold(fail_on=99)}],
    ids=["known", "exit-zero", "fewer than asked for"],
)
def test_what_makes_no_check_fail_stops_nothing(follow: Any, options: dict[str, Any]) -> None:
    """What is broken is counted all the same."""
    progress = follow(stuck=("model.fc2.weight",), since=2, **options).give()

    assert progress.violations > 0
    assert not progress.fails


def test_a_check_that_ends_says_so(follow: Any) -> None:
    """Nobody is to wait for it."""
    run = follow()
    run.give()

    run.announcing.announce(is_running=False)

    assert not read_progress(run.path).running


def test_a_file_that_cannot_be_written(follow: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """At the begin it is an error; later it is told once, and the check goes on."""
    run = follow()
    run.path.unlink()
    run.path.mkdir()

    for _ in range(2):
        run.now[0] += 2
        run.announcing.announce()

    assert capsys.readouterr().err.count("note: --progress: ") == 1
    with pytest.raises(ConfigError, match="cannot be written"):
        run.announcing.begin()
