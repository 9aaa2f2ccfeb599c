"""How much a page shows: what is more stands in the other files of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 1_000_000  # of a page
_LEAST = 1


@attrs.frozen(kw_only=True)
class Limits:
    """How many of each are shown, in all runs together where nothing else is said."""

    cards: int = 24  # groups in full
    rows: int = 600  # of tables with a line for each group or invariant
    strips: int = 48  # of the timelines, each for a group and a rank
    members: int = 12  # of a card: what was broken with it
    fields: int = 24  # of a record

    def tighter(self) -> Limits:
        """Return half of them."""
        return Limits(
            cards=max(self.cards // 2, _LEAST),
            rows=max(self.rows // 2, _LEAST),
            strips=max(self.strips // 2, _LEAST),
            members=max(self.members // 2, _LEAST),
            fields=max(self.fields // 2, _LEAST),
        )

    def shared(self, runs: int) -> Limits:
        """Return the part of each of several runs."""
        return attrs.evolve(
            self,
            cards=max(self.cards // runs, _LEAST),
            rows=max(self.rows // runs, _LEAST),
            strips=max(self.strips // runs, _LEAST),
        )


def fitting(written: Callable[[Limits], str], limits: Limits) -> tuple[str, Limits]:
    """Return the first text below `MAX_BYTES` and its limits, or the shortest that there is."""
    while True:
        text = written(limits)
        tighter = limits.tighter()
        if len(text.encode()) <= MAX_BYTES or tighter == limits:
            return text, limits
        limits = tighter
