"""Whether standard input has ended: who started this program says so that a run is over."""

from __future__ import annotations

import os
import select
import sys

_CHUNK = 4096


class EndOfInput:
    """Is asked now and then, and never waits; what comes before the end is passed over."""

    def __init__(self) -> None:
        self._has_come = sys.__stdin__ is None or sys.__stdin__.closed

    @property
    def has_come(self) -> bool:
        """Whether it has."""
        while not self._has_come and select.select([0], [], [], 0)[0]:
            self._has_come = not _read()
        return self._has_come


def _read() -> bytes:
    try:
        return os.read(0, _CHUNK)
    except OSError:  # a terminal that is gone
        return b""
