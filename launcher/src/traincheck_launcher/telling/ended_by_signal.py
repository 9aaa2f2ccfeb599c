"""Programs that a signal ended: they can't tell of it themselves."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 2**20  # bytes at the end of an output that are looked at
_SHELL = 128  # what a shell adds to the number of the signal
# As torchrun tells it of the process that it saw fail first.
_ROOT_CAUSE = re.compile(
    rb"Root Cause[^\n]*\n(?:[^\n]*\n){0,3}?\s*host\s*: (\S+)"
    rb"\s+rank\s*: (\d+)[^\n]*\s+exitcode\s*: (-?\d+)"
)


def signal_in(code: int) -> str:
    """Return the name of the signal that an exit code stands for, or nothing."""
    return _name(code - _SHELL) if _SHELL < code < _SHELL + signal.NSIG else ""


def rank_ended_by_signal(output: Path) -> str:
    """Say which rank a signal ended first, if that is torchrun's last word; or nothing."""
    try:
        with output.open("rb") as file:
            file.seek(max(output.stat().st_size - _LONGEST, 0))
            found = [*_ROOT_CAUSE.finditer(file.read())]
    except OSError:
        return ""
    if not found or int(found[-1][3]) >= 0:
        return ""
    host, rank, code = found[-1].groups()
    number = -int(code)
    why = "; if nobody sent it, memory ran out" if number == signal.SIGKILL else ""
    who = f"rank {int(rank)} failed first ({host.decode(errors='replace')})"
    return f"{who}: {_name(number)} ended it{why}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
