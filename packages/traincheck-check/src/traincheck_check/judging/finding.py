"""What checking found out about one invariant in one run; memory is bounded per invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_check.judging.timeline import Timelines
from traincheck_relations.api import RecordRef
from traincheck_relations.occasion import place_of
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.occasion import Evidence, Place
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_relations.api import Example

MAX_VARIABLES = 20  # names kept of those on which an invariant was broken
MAX_EVIDENCE = 6  # records kept, of the first violations


@attrs.frozen(order=True)
class _Moment:
    """When something was told: of ranks at the same window, the least comes first.

    A trace that grows is read as it comes, and one that has ended shard by shard: what is told of
    both must not depend on it.
    """

    window: Window
    rank: int
    shard: str  # of the first record that shows it: a rank may have several processes
    count: int  # of what was told before


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
    happened: str = ""
    timelines: Timelines = attrs.field(factory=Timelines)
    _first_moment: _Moment | None = None
    _last_moment: _Moment | None = None
    _variables: dict[str, _Moment] = attrs.field(factory=dict)
    _evidence: list[tuple[_Moment, tuple[RecordRef, ...]]] = attrs.field(factory=list)

    @property
    def variables(self) -> Mapping[str, object]:
        """The variables that it was broken on, in the order of appearance."""
        return dict(sorted(self._variables.items(), key=lambda each: each[1]))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The records that show the first violations."""
        refs = [ref for _, of in self._evidence for ref in of]
        return tuple(
            Evidence(rank=ref.rank, shard=ref.shard, record=ref.record)
            for ref in refs[:MAX_EVIDENCE]
        )

    def add(self, example: Example) -> None:
        """Count an occasion on which the precondition held."""
        self.occasions += 1
        if not example.held:
            self._add_violation(example)

    def _add_violation(self, example: Example) -> None:
        self.violations += 1
        at = example.at
        evidence = example.evidence
        shard = evidence[0].shard if evidence else ""
        moment = _Moment(at.window, at.rank, shard, self.violations)
        self.ranks.add(at.rank)
        self.timelines.add(at.rank, at.window.step)
        # What a monitor says at the end of a run may lie before what it said earlier.
        if self._first_moment is None or moment < self._first_moment:
            self._first_moment, self.first = moment, place_of(at)
            self.happened = example.happened
        if self._last_moment is None or moment > self._last_moment:
            self._last_moment, self.last = moment, place_of(at)
        if at.variable is not None:
            self._add_variable(at.variable, moment)
        if len(self._evidence) < MAX_EVIDENCE or moment < self._evidence[-1][0]:
            self._evidence.append((moment, evidence))
            self._evidence.sort(key=lambda each: each[0])
            del self._evidence[MAX_EVIDENCE:]

    def _add_variable(self, name: str, moment: _Moment) -> None:
        """Keep the names that appeared first."""
        self._variables[name] = min(moment, self._variables.get(name, moment))
        if len(self._variables) > MAX_VARIABLES:
            del self._variables[max(self._variables, key=self._variables.__getitem__)]
