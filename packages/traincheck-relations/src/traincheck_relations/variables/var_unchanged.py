"""`VarUnchangedRelation`: a call leaves the variables as they are that are not meant to change.

A parameter that requires no gradient when an optimizer's step begins has the same data when it
ends. One that was frozen while it had a gradient moves on by it, or by momentum and weight decay.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import call_properties, variable_properties
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import has_changed
from traincheck_relations.variables.change import is_told
from traincheck_relations.variables.observed import ObservedCall, ObservedCalls
from traincheck_trace_schema.invariants import APIParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Event, Gap, Monitor, Proposer, VariableState

_CLAIM: Params = (
    APIParam(api_full_name=OPTIMIZER_STEP),
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data", post_value="unchanged"),
)


class VarUnchangedRelation:
    """An optimizer's step leaves parameters that require no gradient as they are."""

    name: ClassVar[str] = "VarUnchangedRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return VarUnchangedProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _insist(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": frozenset(("data", "requires_grad"))},
            observe=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        for param in params:
            _insist(param)
        return VarUnchangedMonitor(len(params))

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        _insist(params)
        return (
            f"Each call of {OPTIMIZER_STEP} leaves the parameters that require no gradient "
            "as they are"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _insist(params)
        return (
            "whether the parameters were frozen while they had a gradient: set it to None, for "
            "momentum, weight decay and that gradient move them on; whether something else writes "
            "to them during the step"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _insist(params)
        return 0.9


class VarUnchangedProposer:
    """Proposes the claim where a parameter was frozen in a step."""

    interests = Interests(kinds=frozenset(("observe",)))

    def __init__(self) -> None:
        self._observed = ObservedCalls()
        self._has_frozen = False

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if not self._has_frozen and (observed := self._observed.on_observe(event)) is not None:
            self._has_frozen = _is_step(observed) and any(
                not has_changed(before, after, "data") for before, after in _frozen(observed)
            )

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return (_CLAIM,) if self._has_frozen else ()


class VarUnchangedMonitor(EventMonitor):
    """Compares frozen parameters around each step of an optimizer."""

    interests = Interests(kinds=frozenset(("observe",)))

    def __init__(self, claims: int) -> None:
        self._claims = claims  # all say the same
        self._observed = ObservedCalls()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        observed = self._observed.on_observe(event)
        return () if observed is None or not _is_step(observed) else self._examples(event, observed)

    def on_gap(self, gap: Gap) -> None:
        """Forget the calls that were open when records were lost."""
        self._observed.forget(gap.process)

    def _examples(self, event: Event, observed: ObservedCall) -> Iterator[Example]:
        call = observed.call
        about_call = {**call_properties(call), **observed.context}
        for before, after in _frozen(observed):
            held = not has_changed(before, after, "data")
            for index in range(self._claims):
                yield Example(
                    param=index,
                    held=held,
                    context=about_call | variable_properties(before, call),
                    at=position_of(event, call, before.names[0]),
                    evidence=partial(evidence_of, event, call),
                    happened=""
                    if held
                    else f"{call.function} changed {before.names[0]}, which requires no gradient",
                )


def _is_step(observed: ObservedCall) -> bool:
    wanted = {"data", "requires_grad"}
    return OPTIMIZER_STEP in observed.call.names and wanted <= observed.attributes


def _frozen(observed: ObservedCall) -> Iterator[tuple[VariableState, VariableState]]:
    for before, after in observed.pairs():
        if before.attributes.get("requires_grad") is False and is_told(before, after, "data"):
            yield before, after


def _insist(params: Params) -> None:
    if params != _CLAIM:
        raise TypeError(f"VarUnchangedRelation takes {_CLAIM!r}, got {params!r}")
