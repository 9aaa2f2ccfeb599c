"""`ParameterMovementRelation`: an optimizer's step does not blow a parameter up.

The norm of a parameter grows by less than a factor in one step. Only traces that tell statistics of
tensors (`--tensor-dump-format stats`) say something. The first steps of a parameter don't: one that
begins at zero grows by any factor.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import call_properties
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import payload
from traincheck_relations.variables.holding import number
from traincheck_relations.variables.observed import ObservedCall, ObservedCalls
from traincheck_trace_schema.invariants import APIParam, Params, ValueParam, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Event, Gap, Monitor, Proposer, VariableState

_FACTOR = 10  # from one step to the next; a rate that is right moves weights by per cents
_SETTLED = 3  # steps that begin with a parameter that is not zero, before the claim is made
_CLAIM: Params = (
    APIParam(api_full_name=OPTIMIZER_STEP),
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"),
    ValueParam(name="factor", value=_FACTOR),
)


class ParameterMovementRelation:
    """The norm of a parameter grows by less than a factor in one step of an optimizer."""

    name: ClassVar[str] = "ParameterMovementRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return MovementProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _factor(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": frozenset(("data",))},
            observe=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return MovementMonitor([_factor(one) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        return (
            f"The norm of each parameter grows by less than {_factor(params):g} times "
            f"in a call of {OPTIMIZER_STEP}"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _factor(params)
        return (
            "the learning rate of this step, and of the group that holds these parameters; whether "
            "gradients were clipped and unscaled before it; whether the loss had exploded, or the "
            "state of the optimizer was loaded wrongly"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _factor(params)
        return 0.8


class MovementProposer:
    """Proposes the claim where a trace tells norms."""

    interests = Interests(kinds=frozenset(("observe",)))

    def __init__(self) -> None:
        self._observed = ObservedCalls()
        self._tells_norms = False

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if not self._tells_norms and (observed := self._observed.on_observe(event)) is not None:
            self._tells_norms = any(True for _ in _norms(observed))

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return (_CLAIM,) if self._tells_norms else ()


class MovementMonitor(EventMonitor):
    """Compares the norms of parameters around each step of an optimizer."""

    interests = Interests(kinds=frozenset(("observe",)))

    def __init__(self, factors: Sequence[float]) -> None:
        self._factors = factors
        self._observed = ObservedCalls()
        self._steps: Counter[tuple[int, int]] = Counter()  # of a parameter that is not zero

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        observed = self._observed.on_observe(event)
        return () if observed is None else self._examples(event, observed)

    def on_gap(self, gap: Gap) -> None:
        """Forget the calls that were open when records were lost."""
        self._observed.forget(gap.process)

    def _examples(self, event: Event, observed: ObservedCall) -> Iterator[Example]:
        call = observed.call
        context = {**call_properties(call), **observed.context}
        for state, old, new in _norms(observed):
            key = event.process, state.id
            self._steps[key] += 1
            if self._steps[key] <= _SETTLED:
                continue
            for index, factor in enumerate(self._factors):
                held = new < factor * old
                yield Example(
                    param=index,
                    held=held,
                    context=context,
                    at=position_of(event, call, state.names[0]),
                    evidence=partial(evidence_of, event, call),
                    happened=""
                    if held
                    else f"{call.function} let the norm of {state.names[0]} grow "
                    f"from {old:.3g} to {new:.3g}",
                )


def _norms(observed: ObservedCall) -> Iterator[tuple[VariableState, float, float]]:
    """Yield the norms of parameters before and after a step, of those that were not zero."""
    if OPTIMIZER_STEP not in observed.call.names or "data" not in observed.attributes:
        return
    for before, after in observed.pairs():
        old, new = _norm(before), _norm(after)
        if old and new is not None:
            yield before, old, new


def _norm(state: VariableState) -> float | None:
    tensor = payload(state.attributes.get("data"), "tensor")
    return number(payload(tensor, "statistics").get("norm"))


def _factor(params: Params) -> float:
    api, variable, *values = params
    factor = values[0].value if len(values) == 1 and isinstance(values[0], ValueParam) else None
    if (api, variable) != _CLAIM[:2] or not isinstance(factor, int | float):
        msg = f"ParameterMovementRelation takes {_CLAIM!r} with a factor, got {params!r}"
        raise TypeError(msg)
    return factor
