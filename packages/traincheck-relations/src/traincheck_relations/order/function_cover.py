"""`FunctionCoverRelation`: a call of B is always preceded by one of A.

As TrainCheck 0.x had it: since the call of B before, wherever in the run. Of its own accord it
proposes the claim that A comes before B in each training step, which says where they stand in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from traincheck_relations.order.call_order import Order, OrderMonitor
from traincheck_relations.order.causes import usual_causes
from traincheck_relations.order.implied_orders import Edge, without_implied
from traincheck_relations.order.protocol import CORE, ZERO_GRAD, function_name, requirements
from traincheck_relations.order.sibling_calls import SiblingCalls
from traincheck_trace_schema.invariants import APIParam, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_relations.api import Event, Monitor, Proposer, Requirements
    from traincheck_trace_schema.invariants import Invariant, Params

WITHIN_STEP: Final = ValueParam(name="within", value="step")


class FunctionCoverRelation:
    """Each call of B comes after a call of A: since the call of B before, or in the same step."""

    name: ClassVar[str] = "FunctionCoverRelation"
    group: ClassVar[str] = "func_cover"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return CoverProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        first, second, _ = _parts(params)
        return requirements((first, second))

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return OrderMonitor([_order(*_parts(one)) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        first, second, is_within_step = _parts(params)
        if is_within_step:
            return f"In each training step {second} is called only after {first}"
        return f"Between two calls of {second}, and before the first, {first} is called"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        return usual_causes(_parts(params)[:2])

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        """Drop "A before C" where "A before B" and "B before C" are known."""
        edges = []
        for invariant in invariants:
            first, second, is_within_step = _parts(invariant.params)
            edges.append(Edge(invariant, first, second, kind=str(is_within_step)))
        return without_implied(edges)

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        first, second, _ = _parts(params)
        return 0.9 if {first, second} <= CORE else 0.8


class CoverProposer:
    """Proposes for functions that were called side by side the order that was seen."""

    interests = SiblingCalls.interests

    def __init__(self) -> None:
        self._siblings = SiblingCalls()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        self._siblings.on_event(event)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        for first, second in sorted(self._siblings.pairs):
            if ZERO_GRAD in {first, second}:  # a loop may clear at its begin, or at its end
                continue
            yield APIParam(api_full_name=first), APIParam(api_full_name=second), WITHIN_STEP


def _order(first: str, second: str, is_within_step: bool) -> Order:  # noqa: FBT001  a part of params
    since = "in this step" if is_within_step else f"since the call of {second} before"
    return Order(
        trigger=second,
        other=first,
        is_within_step=is_within_step,
        is_unrestricted=not is_within_step,
        happened=f"{second} was called, but {first} was not called before it {since}",
    )


def _parts(params: Params) -> tuple[str, str, bool]:
    first, second, *scope = params
    if scope not in ([], [WITHIN_STEP]):
        raise TypeError(f"after two APIParams expected nothing or {WITHIN_STEP!r}, got {scope!r}")
    return function_name(first), function_name(second), bool(scope)
