"""`DistinctGradientRelation`: when an optimizer steps, no two matrices have the same gradient.

Who copies gradients into buffers and back, as a reducer that overlaps communication does, may give
one parameter what belongs to another. Vectors are left out: biases that are added up have the same
gradient rightly, as the two of an LSTM.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import (
    call_properties,
    run_properties,
    variable_properties,
)
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import content, is_comparable, is_finite, payload, value_class
from traincheck_relations.variables.observed import looked_at, stepping
from traincheck_trace_schema.invariants import OccasionParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traincheck_relations.api import Event, Monitor, Proposer, VariableState

_CLAIM: Params = (
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="grad"),
    OccasionParam(function=OPTIMIZER_STEP, phase="begin"),
)
_A_MATRIX = 2  # dimensions
_A_PAIR = 2


class DistinctGradientRelation:
    """No two parameters with two dimensions or more have the same gradient, unless it is zero."""

    name: ClassVar[str] = "DistinctGradientRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return DistinctGradientProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _insist(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": frozenset(("grad",))},
            observe_before=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        for param in params:
            _insist(param)
        return DistinctGradientMonitor(len(params))

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        _insist(params)
        return f"No two parameters that are matrices have the same gradient at {OPTIMIZER_STEP}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _insist(params)
        return (
            "what copies gradients: buckets, flat buffers, offloading; whether one of them is "
            "filled again before it was read, and gives a parameter what belongs to another; "
            "whether the offsets into it are right; whether a hook returns another gradient"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _insist(params)
        return 0.8


class DistinctGradientProposer:
    """Proposes the claim where two gradients could be compared, and differed."""

    interests = Interests(kinds=frozenset(("observe",)))

    def __init__(self) -> None:
        self._has_distinct = False

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if not self._has_distinct and _is_begin_of_step(event):
            self._has_distinct = len(_counts(_compared(event))) >= _A_PAIR

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return (_CLAIM,) if self._has_distinct else ()


class DistinctGradientMonitor(EventMonitor):
    """Compares the gradients of a process with one another when an optimizer's step begins."""

    interests = Interests(kinds=frozenset(("observe",)))

    def __init__(self, claims: int) -> None:
        self._claims = claims  # all say the same

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        return self._examples(event) if _is_begin_of_step(event) else ()

    def _examples(self, event: Event) -> Iterator[Example]:
        compared = _compared(event)
        if event.call is None or len(compared) < _A_PAIR:
            return
        counts = _counts(compared)
        about_call = call_properties(event.call) | run_properties(event)
        for state in compared:
            held = counts[content(state, "grad")] == 1
            for index in range(self._claims):
                yield Example(
                    param=index,
                    held=held,
                    context=about_call | variable_properties(state, event.call),
                    at=position_of(event, event.call, state.names[0]),
                    evidence=partial(records_of, event),
                    happened="" if held else _what_is_same(state, compared),
                )


def _is_begin_of_step(event: Event) -> bool:
    return stepping(event) is not None and "grad" in event.record["attributes"]


def _compared(event: Event) -> list[VariableState]:
    """Return the matrices with a gradient that is neither zero nor without digest."""
    return [
        state
        for state in looked_at(event).values()
        if is_comparable(state, "grad")
        and value_class(state.attributes["grad"]) == "non_zero"
        and is_finite(state, "grad")
        and len(payload(state.attributes["grad"], "tensor").get("shape", ())) >= _A_MATRIX
    ]


def _counts(compared: Iterable[VariableState]) -> Mapping[object, int]:
    return Counter(content(state, "grad") for state in compared)


def _what_is_same(state: VariableState, compared: Iterable[VariableState]) -> str:
    others = [
        other.names[0]
        for other in compared
        if other is not state and content(other, "grad") == content(state, "grad")
    ]
    return f"{state.names[0]} has the gradient of {', '.join(others)}"


def _insist(params: Params) -> None:
    if params != _CLAIM:
        raise TypeError(f"DistinctGradientRelation takes {_CLAIM!r}, got {params!r}")
