"""When what was broken: for each group and rank a strip of the steps of the training."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, islice
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_check.reporting.html.findings import Found
    from traincheck_trace_schema.results import RankProgress, Timeline

_MAX_CELLS = 120  # of a strip
_MAX_RANKS = 8  # of a group
_LEVELS = 3  # of how often


@attrs.frozen(kw_only=True)
class Cell:
    """Steps that follow one another and were broken about as often; in percent of the strip."""

    left: float
    width: float
    level: int  # 1: seldom, beside the most of this group; `_LEVELS`: often
    title: str


@attrs.frozen(kw_only=True)
class Strip:
    """The steps of one rank, and where a group was broken in them."""

    group: int
    rank: int
    known: bool
    occasions: int
    cells: tuple[Cell, ...]
    title: str
    trained: tuple[float, float] | None = None  # left and width, of the steps that the rank did
    is_sampled: bool = False  # and it did not record all of them


@attrs.frozen(kw_only=True)
class Chart:
    """The strips of a run, below one axis of steps."""

    ticks: tuple[int, ...]
    strips: tuple[Strip, ...]
    more: int = 0  # strips that are left out

    @property
    def is_sampled(self) -> bool:
        """Whether some steps were not recorded."""
        return any(each.is_sampled for each in self.strips)


def chart_of(
    found: Sequence[Found], ranks: Sequence[RankProgress], max_strips: int
) -> Chart | None:
    """Return the timelines of groups; None if nothing is known of them."""
    timelines = [line for each in found for line in each.timelines if line.counts]
    if not timelines:
        return None
    axis = _axis(timelines, ranks)
    progress = {each.rank: each for each in ranks}
    rows = [
        (each, rank, lines)
        for each in found
        for rank, lines in islice(_by_rank(each.timelines), _MAX_RANKS)
    ]
    every = sum(len({line.rank for line in each.timelines}) for each in found)
    return Chart(
        ticks=axis.ticks,
        strips=tuple(
            _strip(each, rank, lines, axis, progress.get(rank))
            for each, rank, lines in rows[:max_strips]
        ),
        more=every - len(rows[:max_strips]),
    )


@attrs.frozen
class _Axis:
    """The steps from `first` to before `end`, in cells of `width` steps."""

    first: int
    end: int
    width: int

    @property
    def ticks(self) -> tuple[int, ...]:
        """The first, the middle and the last step, as far as they differ."""
        last = self.end - 1
        return tuple(sorted({self.first, (self.first + last) // 2, last}))

    def part(self, begin: int, end: int) -> tuple[float, float]:
        """Return where steps stand: left and width, in percent."""
        whole = self.end - self.first
        begin, end = max(begin, self.first), min(end, self.end)
        return round(100 * (begin - self.first) / whole, 2), round(100 * (end - begin) / whole, 2)


def _axis(timelines: Sequence[Timeline], ranks: Sequence[RankProgress]) -> _Axis:
    steps = [int(first) for line in timelines for first in line.counts]
    firsts = [each.first for each in ranks if each.first is not None]
    lasts = [each.last for each in ranks if each.last is not None]
    first, end = max(0, min([*firsts, *steps])), max([*lasts, *steps]) + 1
    # The widths of timelines are powers of two, and so the stretches of one lie in another's.
    width = max(line.width for line in timelines)
    while (end - first) / width > _MAX_CELLS:
        width *= 2
    return _Axis(first, end, width)


def _by_rank(timelines: Iterable[Timeline]) -> Iterator[tuple[int, list[Timeline]]]:
    ordered = sorted(timelines, key=lambda line: line.rank)
    for rank, lines in groupby(ordered, key=lambda line: line.rank):
        yield rank, list(lines)


def _strip(
    found: Found, rank: int, lines: Sequence[Timeline], axis: _Axis, of: RankProgress | None
) -> Strip:
    counts: Counter[int] = Counter()
    for line in lines:
        for step, count in line.counts.items():
            counts[int(step) // axis.width * axis.width] += count
    occasions = sum(counts.values())
    steps = f"{min(counts)} to {min(max(counts) + axis.width, axis.end) - 1}"
    trained = None
    if of is not None and of.first is not None and of.last is not None:
        trained = axis.part(of.first, of.last + 1)
    return Strip(
        group=found.number,
        rank=rank,
        known=found.is_known,
        occasions=occasions,
        cells=tuple(_cells(counts, axis)),
        title=f"Finding {found.number} on rank {rank}: {occasions:,} in steps {steps}",
        trained=trained,
        is_sampled=of is not None and of.recorded < of.steps,
    )


def _cells(counts: Counter[int], axis: _Axis) -> Iterator[Cell]:
    """Yield the cells, of which neighbours that look alike are one."""
    most = max(counts.values())
    levels = {step: -(-count * _LEVELS // most) for step, count in counts.items()}

    def run_of(at: tuple[int, int]) -> tuple[int, int]:
        place, step = at
        return levels[step], step // axis.width - place

    for (level, _), run in groupby(enumerate(sorted(counts)), key=run_of):
        steps = [step for _, step in run]
        begin, end = steps[0], min(steps[-1] + axis.width, axis.end)
        left, width = axis.part(begin, end)
        where = f"step {begin}" if end - begin == 1 else f"steps {begin} to {end - 1}"
        title = f"{where}: {sum(counts[step] for step in steps):,}"
        yield Cell(left=left, width=width, level=level, title=title)
