"""The size that the traces of a folder may have together."""

from __future__ import annotations

import contextlib
import math
import os
import time
from pathlib import Path

import attrs

_RESERVE = 4096  # bytes for the gaps and the footer of a process
_MARGIN = 64  # this part of the limit is for what others write between a look and a write
_PIECES = 16  # a trace takes this part of its share, then looks again
_LOOK_SECONDS = 1.0
_LOOK_SHARE = 0.02  # of the time; a folder may have thousands of traces
_GROWING_SECONDS = 2.0  # a trace that was not seen to grow for so long has no share


@attrs.frozen
class _Other:
    """The trace of another process."""

    size: int
    grew: float  # when it was last seen to have grown


@attrs.define
class SizeLimit:
    """Says whether the trace of this process may grow.

    Nobody counts for all processes. Each looks at the sizes of all traces from time to time, and
    takes what is left for shared evenly among those that grow. It takes a small piece of its share
    before it looks again, so that what others do at the same time is a small part of the room.
    """

    folder: Path
    max_bytes: int
    _others: dict[str, _Other] = attrs.field(factory=dict)  # by name
    _has_looked: bool = False
    _share: int = 0  # of this trace, when the others were looked at
    _taken: int = 0  # since then
    _next_look: float = 0.0

    def admits(self, own: str, size: int, more: int, *, is_least: bool) -> bool:
        """Whether a trace may become larger.

        Args:
            own: The name of its file, empty if there is none yet.
            size: What it has, in bytes.
            more: By how much it would become larger.
            is_least: Nothing smaller can be written: its whole share is at its disposal.
        """
        if self._taken + more > self._share // _PIECES or time.monotonic() >= self._next_look:
            self._look(own, size)
        admitted = more <= (self._share if is_least else self._share // _PIECES)
        if admitted:
            self._taken += more
        return admitted

    def has_room(self, own: str, size: int) -> bool:
        """Whether there is room for so many bytes if nobody keeps any for later."""
        others = _sizes(self.folder, own)
        return sum(others.values()) + size <= self.max_bytes

    def _look(self, own: str, size: int) -> None:
        began = time.monotonic()
        sizes = _sizes(self.folder, own)
        sharers = 1 + self._count_growing(sizes, began)
        kept = sharers * _RESERVE + self.max_bytes // _MARGIN
        room = self.max_bytes - size - sum(sizes.values()) - kept
        self._share, self._taken = max(room, 0) // sharers, 0
        took = time.monotonic() - began
        self._next_look = began + max(_LOOK_SECONDS, took / _LOOK_SHARE)

    def _count_growing(self, sizes: dict[str, int], now: float) -> int:
        """Take note of the sizes of the others; return how many of them grow."""
        # What was there first may have ended long ago.
        new = _Other(0, now) if self._has_looked else _Other(-1, -math.inf)
        for name, size in sizes.items():
            before = self._others.get(name, new)
            grew = now if 0 <= before.size < size else before.grew
            self._others[name] = _Other(size, grew)
        self._has_looked = True
        return sum(other.grew > now - _GROWING_SECONDS for other in self._others.values())


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
