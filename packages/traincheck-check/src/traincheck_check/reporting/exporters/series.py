"""How often invariants were broken step by step: a series that grows, and takes nothing back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_trace_schema.results import Summary

MAX_POINTS = 500  # a time that it is told


@attrs.frozen(kw_only=True)
class Point:
    """A stretch of steps: its first, how often something was broken in it, and up to its end."""

    step: int
    violations: int
    so_far: int


@attrs.frozen(kw_only=True)
class Advance:
    """What is new of a run: the last step that is over, and the points up to it, in order."""

    step: int
    points: tuple[Point, ...]


@attrs.define
class Series:
    """The series of one run.

    The steps of what it returns only ever rise, and the violations add up: what is found late, of
    a step that was told before, counts in the next stretch.
    """

    _next: int | None = None  # the first step that was not told yet
    _told: int = 0  # violations

    def advance(self, summary: Summary) -> Advance | None:
        """Return what is new, or None where no step more is over in a run that goes on."""
        counts, width = _counted(summary)
        lasts = [each.last for each in summary.ranks if each.last is not None]
        last = max(lasts, default=-1)
        if summary.running:
            last -= 1  # more may be found out about the step that goes on
        else:
            last = max(last, self._next or 0, *counts)
        if last < (self._next or 0):
            return None
        start = self._start(summary, counts)
        while (last - start) // width >= MAX_POINTS:
            width *= 2
        points = tuple(self._points(counts, range(start, last + 1, width)))
        self._next = last + 1
        return Advance(step=last, points=points)

    def _points(self, counts: Counter[int], stretches: range) -> Iterator[Point]:
        late_first = sorted(counts, reverse=True)
        reached = 0
        for step in stretches:
            end = min(step + stretches.step, stretches.stop)
            while late_first and late_first[-1] < end:
                reached += counts[late_first.pop()]
            new = max(0, reached - self._told)
            self._told += new
            yield Point(step=step, violations=new, so_far=self._told)

    def _start(self, summary: Summary, counts: Counter[int]) -> int:
        if self._next is not None:
            return self._next
        firsts = [each.first for each in summary.ranks if each.first is not None]
        return min([*firsts, *counts], default=0)


def _counted(summary: Summary) -> tuple[Counter[int], int]:
    """Add up violations by the first of the steps that they lie in, and return of how many."""
    counts: Counter[int] = Counter()
    width = 1
    for line in (line for each in summary.violations for line in each.timeline):
        width = max(width, line.width)
        for first, count in line.counts.items():
            counts[int(first)] += count
    return counts, width
