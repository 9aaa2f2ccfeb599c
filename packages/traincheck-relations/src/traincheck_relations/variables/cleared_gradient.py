"""`ClearedGradientRelation`: between two steps of an optimizer its gradients are cleared.

What is not cleared is added to. Orders of calls don't show it where there are several models: what
clears the gradients of one leaves those of another. So this asks the gradients themselves, whoever
clears them, and by whatever means. Some programs write a new gradient over the old one; so the
claim is made of models whose parameters have the same names.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import (
    context_of_variable,
    optimizer_name,
    run_properties,
)
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.of_model import ClaimOfModels
from traincheck_relations.order.protocol import BACKWARD, OPTIMIZER_STEP
from traincheck_relations.value import value_class
from traincheck_relations.variables.observed import is_of_parameters, looked_at, stepping
from traincheck_trace_schema.invariants import OccasionParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Call, Event, Gap, Monitor, Proposer, VariableState

_CLAIM = ClaimOfModels(
    "ClearedGradientRelation",
    (
        VarTypeParam(var_type="torch.nn.Parameter", attr_name="grad", post_value="none"),
        OccasionParam(function=OPTIMIZER_STEP, phase="begin"),
    ),
)
_INTERESTS = Interests(kinds=frozenset(("var", "observe")), functions=frozenset((OPTIMIZER_STEP,)))


class ClearedGradientRelation:
    """What an optimizer has used of gradients is cleared before its next step."""

    name: ClassVar[str] = "ClearedGradientRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ClearedGradientProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _CLAIM.model(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset(), BACKWARD: frozenset()},
            variables={"parameter": frozenset(("grad", "requires_grad"))},
            observe_before=frozenset((OPTIMIZER_STEP, BACKWARD)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return ClearedGradientMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        _CLAIM.model(params)
        return (
            "The gradient of each parameter that an optimizer holds is cleared between two of "
            "its steps"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _CLAIM.model(params)
        return (
            "whether zero_grad is called before each backward pass whose gradients are not to be "
            "added up; whether it is called on the optimizer, or model, that has these "
            "parameters; whether a step is made twice"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _CLAIM.model(params)
        return 0.8


class ClearedGradientProposer:
    """Proposes the claim of each model of which a gradient was cleared."""

    interests = _INTERESTS

    def __init__(self) -> None:
        self._uses = Uses()
        self._models: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if any(was_cleared for _, was_cleared in self._uses.on_event(event)):
            model = event.run.model()
            if model is not None:
                self._models.add(model)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return [_CLAIM.of(model) for model in sorted(self._models)]


class ClearedGradientMonitor(EventMonitor):
    """Asks at each step of an optimizer whether its gradients were cleared since the last one."""

    interests = _INTERESTS

    def __init__(self, params: Sequence[Params]) -> None:
        self._claims = _CLAIM.places(params)
        self._uses = Uses()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        used = self._uses.on_event(event)
        call = event.call
        if not used or call is None:
            return ()
        claims = self._claims.get(event.run.model() or "", ())
        return [example for index in claims for example in _examples(index, event, call, used)]

    def on_gap(self, gap: Gap) -> None:
        """Forget what was used: it may have been cleared where records are missing."""
        self._uses.forget(gap.process)


class Uses:
    """Which gradients an optimizer has used, and which of them were not cleared since."""

    def __init__(self) -> None:
        self._used: defaultdict[int, set[int]] = defaultdict(set)  # by process: ids
        self._uncleared: defaultdict[int, set[int]] = defaultdict(set)

    def on_event(self, event: Event) -> Sequence[tuple[VariableState, bool]]:
        """Take an event of `_INTERESTS`.

        Returns:
            Where a step begins, the parameters whose gradient it uses as an earlier one did, and
            of each whether it was cleared since.
        """
        if not event.is_main or not is_of_parameters(event):
            return ()
        if event.kind == "var":
            tells = "grad" in event.record.get("attributes", ())
            if tells and event.after is not None and not _is_used(event.after):
                self._uncleared[event.process].discard(event.after.id)
            return ()
        call = stepping(event)
        if call is None or "grad" not in event.record["attributes"]:
            return ()
        holder = optimizer_name(call)
        used, uncleared = self._used[event.process], self._uncleared[event.process]
        states = [
            one for one in looked_at(event).values() if holder in one.holders and _is_used(one)
        ]
        found = [(one, one.id not in uncleared) for one in states if one.id in used]
        ids = {one.id for one in states}
        used |= ids
        uncleared |= ids
        return found

    def forget(self, process: int) -> None:
        """Forget the gradients of a process."""
        self._used.pop(process, None)
        self._uncleared.pop(process, None)


def _is_used(state: VariableState) -> bool:
    return value_class(state.attributes.get("grad")) == "non_zero"


def _examples(
    index: int, event: Event, call: Call, used: Iterable[tuple[VariableState, bool]]
) -> Iterator[Example]:
    about_run = run_properties(event)
    evidence = partial(evidence_of, event, call)
    for state, was_cleared in used:
        yield Example(
            param=index,
            held=was_cleared,
            context=partial(context_of_variable, about_run, state, "var.grad"),
            at=partial(position_of, event, call, state.names[0]),
            evidence=evidence,
            happened=""
            if was_cleared
            else f"the gradient of {state.names[0]} was not cleared since an earlier step used it",
        )
