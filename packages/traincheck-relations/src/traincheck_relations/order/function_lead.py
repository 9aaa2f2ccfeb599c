"""`FunctionLeadRelation`: a call of A is always followed by one of B, before A is called again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.order.call_order import Order, OrderMonitor
from traincheck_relations.order.causes import usual_causes
from traincheck_relations.order.implied_orders import Edge, without_implied
from traincheck_relations.order.protocol import CORE, function_name, is_due, requirements
from traincheck_relations.order.sibling_calls import SiblingCalls
from traincheck_trace_schema.invariants import APIParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_relations.api import Event, Monitor, Proposer, Requirements
    from traincheck_trace_schema.invariants import Invariant, Params


class FunctionLeadRelation:
    """Between two calls of A there is one of B."""

    name: ClassVar[str] = "FunctionLeadRelation"
    group: ClassVar[str] = "func_lead"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return LeadProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        return requirements(_parts(params))

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return OrderMonitor([_order(*_parts(one)) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        first, second = _parts(params)
        return f"Each call of {first} is followed by one of {second} before {first} is called again"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        return usual_causes(_parts(params))

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        """Drop what others imply: of functions that take turns a circle is kept."""
        return without_implied([Edge(one, *_parts(one.params)) for one in invariants])

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        return 0.8 if CORE.issuperset(_parts(params)) else 0.6


class LeadProposer:
    """Proposes for functions that were called side by side that they take turns."""

    interests = SiblingCalls.interests

    def __init__(self) -> None:
        self._siblings = SiblingCalls()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        self._siblings.on_event(event)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        pairs = self._siblings.pairs
        for first, second in sorted(pairs | {(second, first) for first, second in pairs}):
            if is_due(first, second):
                yield APIParam(api_full_name=first), APIParam(api_full_name=second)


def _order(first: str, second: str) -> Order:
    return Order(
        trigger=first,
        other=second,
        is_about_earlier=True,
        happened=f"{first} was called again, but {second} was not called since its call before",
    )


def _parts(params: Params) -> tuple[str, str]:
    first, second = params
    return function_name(first), function_name(second)
