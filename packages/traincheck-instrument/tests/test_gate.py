"""Where training that is checked while it goes on waits, and stops."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import torch

from traincheck_instrument import start_step, track
from traincheck_instrument.gate import gate as gate_module
from traincheck_instrument.gate.stopping import StopNote, StoppedByCheck
from traincheck_instrument.settings import Guard
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.progress import JudgedProcess, Progress
from traincheck_trace_schema.progress_file import write_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.torch


class Check:
    """Tells what a check would tell of the run, when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "progress.json"
        self.folder = folder
        self.has_told = False

    def tell(self, **said: Any) -> None:
        """Write the progress of a check that is this process."""
        fields = {"run_id": "run", "host": socket.gethostname(), "pid": os.getpid()}
        fields |= {"beat": 0, "running": True, **said}
        self.has_told = True
        write_progress(self.path, Progress(**fields))

    def judge(self, seq: int | None = None, *, size: int = 0, **said: Any) -> None:
        """Tell how far the only process was judged: all that is on disk, or so far."""
        (shard,) = self.folder.glob("trace_*.json")
        if seq is None:
            seq = max(loads(line).get("seq", -1) for line in shard.read_text().splitlines())
        self.tell(processes=(JudgedProcess(shard=shard.name, rank=0, size=size, seq=seq),), **said)

    @contextmanager
    def later(self, act: Callable[[], None], seconds: float = 0.3) -> Iterator[None]:
        """Act from another thread, after a while."""
        timer = threading.Timer(seconds, act)
        timer.start()
        yield
        timer.join()


@pytest.fixture
def check(tmp_path: Path) -> Check:
    return Check(tmp_path)


@pytest.fixture
def guarded(record: Callable[..., Any], check: Check) -> Callable[..., Any]:
    """Record what happens in a `with` block, under the eyes of the check."""

    def begin(*, lockstep: bool = False, **settings: Any) -> Any:
        return record(guard=Guard(progress=check.path, lockstep=lockstep), **settings)

    return begin


def _last(folder: Path) -> dict[str, Any]:
    (shard,) = folder.glob("trace_*.json")
    return loads(shard.read_text().splitlines()[-1])


def test_a_run_in_which_nothing_is_broken_goes_on(guarded: Any, check: Check) -> None:
    """Also where the check tells nothing at all."""
    with guarded():
        start_step()
        check.tell()
        start_step()

    assert StopNote.beside(check.path) is None


def test_what_makes_the_check_fail_stops_the_next_step(guarded: Any, check: Check) -> None:
    """With exit code 1, a whole trace, and a note that says where."""
    with guarded() as recorded:
        start_step()
        check.tell(fails=True)
        with pytest.raises(SystemExit) as stopped:
            start_step()
        assert _last(check.folder)["kind"] == "footer"  # before the program goes to its end

    assert stopped.value.code == 1
    assert StopNote.beside(check.path) == StopNote(step=1, before="step")
    assert [step["step"] for step in recorded.records("step")] == [0, 1]


def test_a_program_that_catches_the_stop_is_stopped_again(guarded: Any, check: Check) -> None:
    """As in a loop that tries each batch again."""
    with guarded():
        check.tell(fails=True)
        for _ in range(3):
            with pytest.raises(StoppedByCheck):
                start_step()

    assert StopNote.beside(check.path) == StopNote(step=0, before="step")


def test_what_is_told_of_another_run_stops_nothing(guarded: Any, check: Check) -> None:
    """It may have been left in the folder."""
    with guarded():
        check.tell(fails=True, run_id="another")
        start_step()


def test_a_micro_batch_is_stopped_too(guarded: Any, check: Check) -> None:
    """Where the optimizer never steps, the step never ends."""
    with guarded():
        start_step(accumulating=True)
        check.tell(fails=True)
        with pytest.raises(StoppedByCheck):
            start_step(accumulating=True)

    assert StopNote.beside(check.path) == StopNote(step=0, before="micro-batch")


def test_a_loop_without_marks_is_stopped(guarded: Any, check: Check) -> None:
    """The call of the model that begins the next step doesn't come to it."""
    calls = []
    model = torch.nn.Linear(2, 1)
    model.register_forward_hook(lambda *_: calls.append(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with guarded(steps_from=None):
        track(model)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        check.tell(fails=True)
        with pytest.raises(StoppedByCheck):
            model(torch.ones(1, 2))

    assert calls == [1]


def test_in_lockstep_a_step_waits_for_the_verdict(guarded: Any, check: Check) -> None:
    """All that was told so far is on disk meanwhile."""
    with guarded(lockstep=True):
        check.tell()
        with check.later(check.judge):
            start_step()
            assert check.has_told
        (shard,) = check.folder.glob("trace_*.json")
        assert '"kind":"step"' in shard.read_text()
        with check.later(lambda: check.judge(fails=True)), pytest.raises(StoppedByCheck):
            start_step()

    assert StopNote.beside(check.path) == StopNote(step=1, before="step")


def test_in_lockstep_no_checkpoint_is_written_after_a_violation(guarded: Any, check: Check) -> None:
    """What is recorded before it is judged first."""
    written = io.BytesIO()
    with guarded(lockstep=True):
        check.tell()
        torch.save({}, io.BytesIO())  # before the first step nothing is awaited
        with check.later(check.judge):
            start_step()
        torch.save({}, io.BytesIO())
        torch.nn.functional.relu(torch.ones(1))
        with check.later(lambda: check.judge(fails=True)), pytest.raises(StoppedByCheck):
            torch.save({}, written)

    assert written.getvalue() == b""
    assert StopNote.beside(check.path) == StopNote(step=0, before="checkpoint")


def test_without_lockstep_nothing_is_waited_for(guarded: Any, check: Check) -> None:
    """Nor is a checkpoint held."""
    check.tell()
    with guarded():
        start_step()
        began = time.monotonic()
        start_step()
        torch.save({}, io.BytesIO())

    assert time.monotonic() - began < gate_module._SILENCE_SECONDS


@pytest.mark.parametrize("lockstep", [False, True])
def test_what_saves_is_put_back(guarded: Any, check: Check, *, lockstep: bool) -> None:
    """Afterwards, torch is as it was."""
    before = torch.save
    check.tell(running=False)
    with guarded(lockstep=lockstep):
        assert torch.save is not before

    assert torch.save is before


def _gone() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("said", [{"running": False}, {"pid": -1}], ids=["ended", "killed"])
def test_a_check_that_is_gone_is_not_waited_for(
    guarded: Any, check: Check, said: dict[str, Any]
) -> None:
    """The training goes on unchecked, at once."""
    with guarded(lockstep=True):
        check.tell(**(said | {"pid": _gone()} if "pid" in said else said))
        began = time.monotonic()
        for _ in range(3):
            start_step()

    assert time.monotonic() - began < gate_module._SILENCE_SECONDS


def test_a_check_that_does_not_answer_is_told_once(
    guarded: Any, check: Check, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not waited for until it tells something."""
    monkeypatch.setattr(gate_module, "_SILENCE_SECONDS", 0.2)
    with guarded(lockstep=True):
        check.tell()
        for _ in range(3):
            start_step()
        check.tell()
        with check.later(check.judge, 0.1):
            start_step()

    assert capsys.readouterr().err.count("the check does not answer") == 1


def test_ranks_that_hold_the_verdict_back_are_waited_for_once(
    guarded: Any, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that trains no more would cost as much at each step; when it is back, it counts again."""
    monkeypatch.setattr(gate_module, "_OTHERS_SECONDS", 0.4)
    waited = []
    with guarded(lockstep=True):
        check.tell()
        with check.later(lambda: check.judge(-1, size=10**9, awaited=(1,)), 0.05):
            for _ in range(4):
                began = time.monotonic()
                start_step()
                waited.append(time.monotonic() - began)

    assert waited[0] >= 0.4
    assert sum(waited[1:]) < 0.4


def test_a_fault_of_the_gate_stops_nothing(
    guarded: Any, check: Check, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told, as all faults are."""

    def fail(*_: object) -> None:
        raise ValueError("of ours")

    monkeypatch.setattr("traincheck_instrument.gate.verdicts.Verdicts.look", fail)
    with guarded() as recorded:
        recorded.recorder.faults.strict = False
        check.tell(fails=True)
        start_step()

    assert "the verdict of the check: ValueError: of ours" in capsys.readouterr().err


def test_without_a_check_nothing_is_there(record: Callable[..., Any]) -> None:
    """Neither a gate nor a replaced function."""
    before = torch.save
    with record(modules=("torch.nn",)) as recorded:
        assert recorded.recorder.steps.gate is None
        assert torch.save is before
