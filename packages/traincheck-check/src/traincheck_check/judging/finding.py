"""What checking found out about one invariant in one run; memory is bounded per invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_check.judging.timeline import Timelines
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.occasion import Evidence, Place
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_PASS, Window

if TYPE_CHECKING:
    from traincheck_relations.api import Example, Position

MAX_VARIABLES = 20  # names kept of those on which an invariant was broken
MAX_EVIDENCE = 6  # records kept, of the first violations


@attrs.define(eq=False)
class Finding:
    """An invariant, its occasions, and where it was broken."""

    invariant: Invariant
    occasions: int = 0  # on which its precondition held
    unmet: int = 0  # on which it did not
    violations: int = 0
    first: Place | None = None
    last: Place | None = None
    ranks: set[int] = attrs.field(factory=set)
    variables: dict[str, None] = attrs.field(factory=dict)  # in the order of appearance
    happened: str = ""
    evidence: list[Evidence] = attrs.field(factory=list)
    timelines: Timelines = attrs.field(factory=Timelines)
    _first_window: Window | None = None
    _last_window: Window | None = None

    def add(self, example: Example) -> None:
        """Count an occasion on which the precondition held."""
        self.occasions += 1
        if not example.held:
            self._add_violation(example)

    def _add_violation(self, example: Example) -> None:
        self.violations += 1
        at = example.at
        self.ranks.add(at.rank)
        self.timelines.add(at.rank, at.window.step)
        if at.variable is not None and len(self.variables) < MAX_VARIABLES:
            self.variables[at.variable] = None
        if len(self.evidence) < MAX_EVIDENCE:
            room = MAX_EVIDENCE - len(self.evidence)
            self.evidence += [
                Evidence(rank=ref.rank, shard=ref.shard, record=ref.record)
                for ref in example.evidence[:room]
            ]
        # What a monitor says at the end of a run may lie before what it said earlier.
        if self._first_window is None or at.window < self._first_window:
            self._first_window, self.first = at.window, place_of(at)
            self.happened = example.happened
        if self._last_window is None or at.window >= self._last_window:
            self._last_window, self.last = at.window, place_of(at)


def place_of(at: Position) -> Place:
    """Return a position as the results tell it."""
    eval_step = at.window.eval_step
    return Place(
        step=at.window.step,
        eval_step=None if eval_step in (BEFORE_PASS, AFTER_PASS) else eval_step,
        stage=at.stage,
        rank=at.rank,
        function=at.function,
        variable=at.variable,
        source=at.source,
    )
