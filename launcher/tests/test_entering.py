"""An output folder is for one run; those who take part in it share the folder."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_launcher.output.entering import entered, joined, wait_until_last
from traincheck_launcher.output.folder import OutputFolder
from traincheck_launcher.output.occupancy import NAME
from traincheck_launcher.starting.launch import Launch
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Takes part in a run, says so, and goes on until its input ends.
OTHER = """\
import sys
from pathlib import Path
from traincheck_launcher.output.entering import entered
from traincheck_launcher.output.folder import OutputFolder
from traincheck_launcher.starting.launch import Launch

folder = OutputFolder(Path(sys.argv[1]))
launch = Launch(run_id=sys.argv[2], suffix="")
write = lambda: folder.settings.write_text(f'{{"run_id": "{launch.run_id}"}}')
with entered(folder, launch, overwrite=False, write=write) as occupancy:
    print("at work", flush=True)
    sys.stdin.read()
    print(occupancy.is_last_to_end())
"""


@pytest.fixture
def folder(tmp_path: Path) -> OutputFolder:
    return OutputFolder(tmp_path / "out")


@pytest.fixture
def other(folder: OutputFolder) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that takes part in the run `r`."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder.path), "r"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        yield process
        process.kill()


def enter(folder: OutputFolder, run_id: str, *, overwrite: bool = False, **facts: Any):
    """Enter, and say whether the folder was prepared for that, and whether we were the last."""
    written: list[str] = []

    def write() -> None:
        written.append(run_id)
        folder.settings.write_text(f'{{"run_id": "{run_id}"}}')

    launch = Launch(run_id=run_id, suffix="", **facts)
    with entered(folder, launch, overwrite=overwrite, write=write) as occupancy:
        return bool(written), occupancy.is_last()


def test_the_first_prepares_the_folder_and_leaves_no_lock_behind(folder):
    """Alone it is also the last."""
    assert enter(folder, "r") == (True, True)
    assert not (folder.path / NAME).exists()


@pytest.mark.usefixtures("other")
def test_a_second_part_of_a_run_joins_the_first(folder):
    """It deletes and refuses nothing, although there are traces, and `--overwrite` was given."""
    trace = folder.path / "trace_r0_p1.json"
    trace.write_text("{}\n")

    assert enter(folder, "r", overwrite=True) == (False, False)
    assert trace.exists()


@pytest.mark.usefixtures("other")
def test_another_run_is_kept_out(folder):
    """Also one that would overwrite; what is there stays."""
    trace = folder.path / "trace_r0_p1.json"
    trace.write_text("{}\n")

    with pytest.raises(ConfigError, match="in use by another run; choose another folder"):
        enter(folder, "another", overwrite=True)
    assert trace.exists()


def test_a_run_of_the_same_name_that_has_ended_is_an_earlier_one(folder, other):
    """Unless it is known to be the same, because torchrun has started its ranks again."""
    other.kill()  # however it ends
    other.wait()
    trace = folder.path / "trace_r0_p1.json"
    trace.write_text("{}\n")

    with pytest.raises(ConfigError, match="traces of an earlier run"):
        enter(folder, "r")
    assert enter(folder, "r", rejoins=True) == (False, True)
    assert trace.exists()
    assert enter(folder, "r", overwrite=True) == (True, True)
    assert not trace.exists()


def test_a_rank_waits_for_the_one_that_prepares(folder, tmp_path):
    """It goes on when that one says so, and not because of what an earlier run has left."""
    enter(folder, "r")
    ready = tmp_path / "ready"
    entering = threading.Event()

    def follow() -> None:
        with joined(folder, Launch(run_id="r", suffix="", leads=False, ready=ready)):
            entering.set()

    follower = threading.Thread(target=follow)
    follower.start()
    assert not entering.wait(0.3)

    enter(folder, "r", overwrite=True, ready=ready)

    assert entering.wait(60)
    follower.join()


def test_exactly_one_of_those_that_end_is_the_last(folder, other):
    """One that was not is at work no more, even if it is still there."""
    launch = Launch(run_id="r", suffix="")
    with entered(folder, launch, overwrite=False, write=pytest.fail) as occupancy:
        assert not occupancy.is_last_to_end()
        other.stdin.close()
        assert other.stdout.readline() == b"True\n"


def test_who_tells_waits_for_the_others(folder, other):
    """Until the last of them has ended."""
    write = pytest.fail
    launch = Launch(run_id="r", suffix="")
    with entered(folder, launch, overwrite=False, write=write) as occupancy:
        assert not occupancy.is_last()
        other.stdin.close()
        wait_until_last(occupancy)
        assert occupancy.is_last()
