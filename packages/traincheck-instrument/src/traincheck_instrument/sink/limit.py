"""The size that the traces of a folder may have together."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import attrs

_RESERVE = 4096  # bytes for the gap and the footer of a process
_LOOKS = 64  # one whenever this part of the room was taken
_LOOK_SECONDS = 1.0
_LOOK_SHARE = 0.02  # of the time; a folder may have thousands of traces


@attrs.define
class SizeLimit:
    """Says whether the trace of this process may grow.

    The folder is looked at after some time, and after this trace has taken some of the room. Other
    traces that grew until then are taken to grow as this one does, so that all of them together
    stay below the limit.
    """

    folder: Path
    max_bytes: int
    _others: dict[str, int] = attrs.field(factory=dict)  # other traces: their sizes when looked at
    _room: int = 0  # what they and this one left, less what each needs for its end
    _growing: int = 0  # how many of the others grew
    _own: int = 0  # size of this trace when the others were looked at
    _next_look: float = 0.0

    def admits(self, path: Path, size: int, more: int) -> bool:
        """Whether the trace at `path`, of this size, may become larger by `more` bytes."""
        taken = size + more - self._own
        if taken * _LOOKS >= self._room or time.monotonic() >= self._next_look:
            self._look(path, size)
            taken = more
        return taken * (1 + self._growing) <= self._room

    def _look(self, path: Path, size: int) -> None:
        began = time.monotonic()
        before, self._others = self._others, _sizes(self.folder, path.name)
        self._growing = sum(size > before.get(name, 0) for name, size in self._others.items())
        reserve = (1 + self._growing) * _RESERVE
        self._room = self.max_bytes - size - sum(self._others.values()) - reserve
        self._own = size
        took = time.monotonic() - began
        self._next_look = began + max(_LOOK_SECONDS, took / _LOOK_SHARE)


def _sizes(folder: Path, own: str) -> dict[str, int]:
    """Return the sizes of the traces in a folder, by name, but for one."""
    sizes: dict[str, int] = {}
    # A folder or a file that vanished is told where it is written.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("trace_") and entry.name != own:
                with contextlib.suppress(OSError):
                    sizes[entry.name] = entry.stat().st_size
    return sizes
