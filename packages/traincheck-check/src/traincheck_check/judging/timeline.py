"""When an invariant was broken: occasions by step, in a memory that does not grow with them."""

from __future__ import annotations

from collections import Counter

import attrs

from traincheck_trace_schema.results import Timeline

MAX_BUCKETS = 100  # of a rank
MAX_RANKS = 64  # of which a timeline is kept


@attrs.define(eq=False)
class _Buckets:
    """Occasions of one rank, by stretches of `width` steps: as wide as it takes to be few."""

    width: int = 1
    counts: Counter[int] = attrs.field(factory=Counter)

    def add(self, step: int) -> None:
        """Count an occasion."""
        self.counts[step - step % self.width] += 1
        while len(self.counts) > MAX_BUCKETS:
            self.width *= 2
            wider: Counter[int] = Counter()
            for first, count in self.counts.items():
                wider[first - first % self.width] += count
            self.counts = wider


@attrs.define(eq=False)
class Timelines:
    """The occasions of one invariant, by rank."""

    _by_rank: dict[int, _Buckets] = attrs.field(factory=dict)

    def add(self, rank: int, step: int) -> None:
        """Count an occasion; those before the first step count as of step 0."""
        buckets = self._by_rank.get(rank)
        if buckets is None:
            if len(self._by_rank) >= MAX_RANKS:
                return
            buckets = self._by_rank[rank] = _Buckets()
        buckets.add(max(step, 0))

    def told(self) -> tuple[Timeline, ...]:
        """Return them as the results have them."""
        return tuple(
            Timeline(
                rank=rank,
                width=of.width,
                counts={str(first): of.counts[first] for first in sorted(of.counts)},
            )
            for rank, of in sorted(self._by_rank.items())
        )
