"""Which ids were seen, in memory that depends on the holes between them and has a limit."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import attrs

_MAX_RANGES: Final = 10_000


@attrs.define
class SeenIds:
    """A set of integers that mostly rise: kept as ranges, of which the lowest are forgotten."""

    _starts: list[int] = attrs.field(factory=list)
    _ends: list[int] = attrs.field(factory=list)  # the last of each range

    def add(self, number: int) -> bool:
        """Add an id; return whether it is new."""
        if self._ends and number == self._ends[-1] + 1:
            self._ends[-1] = number
            return True
        at = bisect_right(self._starts, number)
        if at and number <= self._ends[at - 1]:
            return False
        if at and number == self._ends[at - 1] + 1:
            self._ends[at - 1] = number
            self._join(at)
        elif at < len(self._starts) and number == self._starts[at] - 1:
            self._starts[at] = number
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number)
            self._forget()
        return True

    def _join(self, at: int) -> None:
        """Make one range of two that touch now."""
        if at < len(self._starts) and self._starts[at] == self._ends[at - 1] + 1:
            self._ends[at - 1] = self._ends[at]
            del self._starts[at], self._ends[at]

    def _forget(self) -> None:
        if len(self._starts) > _MAX_RANGES:
            half = _MAX_RANGES // 2  # seldom, since each time costs the whole list
            del self._starts[:half], self._ends[:half]
