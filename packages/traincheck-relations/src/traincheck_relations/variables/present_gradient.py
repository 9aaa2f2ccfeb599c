"""`PresentGradientRelation`: what an optimizer holds has a gradient when it steps.

A layer that is frozen in mid-run, detached from the loss, or whose gradient is cleared before the
step, stays as it is from then on, and the loss goes on to fall. Which parameters get a gradient in
each step is up to the program: heads that take turns, experts, adapters. So the claim is made of
models whose parameters have the same names.
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
from traincheck_relations.of_model import is_of_model, model_in, of_model
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import is_comparable, is_finite, value_class
from traincheck_relations.variables.observed import looked_at, stepping
from traincheck_trace_schema.invariants import OccasionParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Call, Event, Gap, Monitor, Proposer, VariableState
    from traincheck_trace_schema.invariants import Invariant

_ATTRIBUTES = frozenset(("grad", "requires_grad"))
_BEGIN = OccasionParam(function=OPTIMIZER_STEP, phase="begin")
_JUDGED = ("var.grad", "var.requires_grad")  # and the reason
_CLASSES = ("non_none", "non_zero")  # what is claimed of the gradient; the second says more


class PresentGradientRelation:
    """Each parameter that an optimizer holds has a gradient when it steps."""

    name: ClassVar[str] = "PresentGradientRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return PresentGradientProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _read(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": _ATTRIBUTES},
            observe_before=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return PresentGradientMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        found, _ = _read(params)
        what = "a gradient" if found == "non_none" else "a gradient that is not zero"
        return f"Each parameter that an optimizer trains has {what} when it steps"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _read(params)
        return (
            "what sets requires_grad to False, or the gradient to None or zero, after training "
            "began; whether the loss still depends on the parameter: a detach, a no_grad block, a "
            "branch that is not taken any more; whether gradients are cleared between backward "
            "and step"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _read(params)
        return 0.7

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        """Drop that there is a gradient where it is not zero."""
        stronger = {
            (model, repr(one.precondition))
            for one in invariants
            for found, model in [_read(one.params)]
            if found == "non_zero"
        }
        return [
            one
            for one in invariants
            for found, model in [_read(one.params)]
            if found == "non_zero" or (model, repr(one.precondition)) not in stronger
        ]


class PresentGradientProposer:
    """Proposes the claims of each model that an optimizer trained."""

    interests = Interests(kinds=frozenset(("observe",)), functions=frozenset((OPTIMIZER_STEP,)))

    def __init__(self) -> None:
        self._trained = Trained()
        self._models: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        model = event.run.model()
        if model is not None and model not in self._models and self._trained.judged(event):
            self._models.add(model)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        for model in sorted(self._models):
            for found in _CLASSES:
                yield _params(found, model)


class PresentGradientMonitor(EventMonitor):
    """Looks at the gradients when a step begins."""

    interests = Interests(kinds=frozenset(("observe",)), functions=frozenset((OPTIMIZER_STEP,)))

    def __init__(self, params: Sequence[Params]) -> None:
        self._claims: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)  # by model
        for index, param in enumerate(params):
            found, model = _read(param)
            self._claims[model].append((index, found))
        self._trained = Trained()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        call = stepping(event)
        if call is None:
            return ()
        judged = self._trained.judged(event)
        claims = self._claims.get(event.run.model() or "", ()) if judged else ()
        return [
            example
            for index, found in claims
            for example in _examples(index, found, event, call, judged)
        ]

    def on_gap(self, gap: Gap) -> None:
        """Forget what had a gradient."""
        self._trained.forget(gap.process)


class Trained:
    """What each optimizer trains: what it holds that requires a gradient, or once had one."""

    def __init__(self) -> None:
        self._had: defaultdict[int, set[int]] = defaultdict(set)  # by process

    def judged(self, event: Event) -> list[tuple[VariableState, str]]:
        """Return the parameters that are trained, and of each the class of its gradient.

        None at a step that says nothing: no gradient is there, as where a closure computes them,
        or one is not finite, which a scaler would see.
        """
        call = stepping(event)
        if call is None or not event.is_main or not {*event.record["attributes"]} >= _ATTRIBUTES:
            return []
        holder, had = optimizer_name(call), self._had[event.process]
        found = []
        for state in looked_at(event).values():
            if holder not in state.holders or not is_comparable(state, "grad"):
                continue
            if not is_finite(state, "grad"):
                return []
            kind = value_class(state.attributes["grad"])
            if kind == "non_zero":
                had.add(state.id)
            if state.id in had or state.attributes.get("requires_grad") is True:
                found.append((state, kind))
        return found if any(kind == "non_zero" for _, kind in found) else []

    def forget(self, process: int) -> None:
        """Forget what had a gradient in a process."""
        self._had.pop(process, None)


def _examples(
    index: int, claimed: str, event: Event, call: Call, judged: Sequence[tuple[VariableState, str]]
) -> Iterator[Example]:
    about_run = run_properties(event)
    evidence = partial(evidence_of, event, call)
    for state, kind in judged:
        held = kind != "none" if claimed == "non_none" else kind == "non_zero"
        yield Example(
            param=index,
            held=held,
            context=partial(context_of_variable, about_run, state, *_JUDGED),
            at=partial(position_of, event, call, state.names[0]),
            evidence=evidence,
            happened="" if held else _what_is_missing(state, kind, call),
        )


def _what_is_missing(state: VariableState, kind: str, call: Call) -> str:
    what = "no gradient" if kind == "none" else "a gradient of zero"
    is_frozen = state.attributes.get("requires_grad") is False
    why = " (requires_grad is False)" if is_frozen else ""
    return f"{state.names[0]} has {what} when {call.function} begins{why}"


def _params(found: str, model: str) -> Params:
    variable = VarTypeParam(var_type="torch.nn.Parameter", attr_name="grad", post_value=found)
    return variable, _BEGIN, of_model(model)


def _read(params: Params) -> tuple[str, str]:
    """Return what is claimed of the gradient, and of which model."""
    if len(params) == 3 and is_of_model(params[2]):  # noqa: PLR2004  as many as `_params` gives
        variable, model = params[0], str(model_in(params))
        if isinstance(variable, VarTypeParam) and variable.post_value in _CLASSES:
            found = variable.post_value
            if params == _params(found, model):
                return found, model
    raise TypeError(
        "PresentGradientRelation takes a VarTypeParam (grad, non_none or non_zero), the begin of "
        f"{OPTIMIZER_STEP} and the ValueParam 'parameters', got {params!r}"
    )
