"""Which rank of a job failed first: the others follow, and fill the log with what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_instrument.process.failure import read_failures
from traincheck_launcher.output.folder import from_here
from traincheck_launcher.telling.ended_by_signal import rank_ended_by_signal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def first_failure(folder: Path, outputs: Iterable[Path] = ()) -> str:
    """Say which rank failed first, of the last start of the job; nothing if none told of it.

    Args:
        folder: Where ranks that raised have told of it.
        outputs: What the run printed; torchrun says there which rank a signal ended first.
    """
    for output in outputs:
        if by_signal := rank_ended_by_signal(output):
            return by_signal
    told = read_failures(folder)
    last = max((failure.restart for _, failure in told), default=0)
    failures = [(path, failure) for path, failure in told if failure.restart == last]
    if not failures:
        return ""
    path, first = failures[0]
    when = f"in step {first.step}" if first.step >= 0 else "before the first step"
    restarts = "1 restart" if first.restart == 1 else f"{first.restart} restarts"
    after = f", after {restarts}" if first.restart else ""
    before = ""
    if len(failures) > 1:
        seconds = (failures[1][1].wall_ns - first.wall_ns) / 1e9
        before = f", {seconds:.1f} s before rank {failures[1][1].rank}"
    return (
        f"rank {first.rank} failed first ({first.host}, {when}{after}{before}): {first.error}; "
        f"its traceback is in {from_here(path)}"
    )
