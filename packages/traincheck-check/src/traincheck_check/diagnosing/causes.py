"""What to look at first: the usual causes of a broken invariant, by the kind of its claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.invariants import (
    ScopeParam,
    VarNameParam,
    VarTypeParam,
    function_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_trace_schema.invariants import Invariant


@attrs.frozen(kw_only=True)
class Pattern:
    """The kind of an invariant's claim: what it is about, without any names of its program."""

    relation: str
    method: str | None  # the last part of the function's name, as "step"
    attribute: str | None  # of a variable
    quantifier: str | None
    scope: str | None

    @property
    def tells(self) -> int:
        """How much a violation tells about the cause; 0 is the most."""
        if self.relation == "ConsistencyRelation":
            # Gradients differ before the data that they change does.
            return 2 if self.attribute == "grad" else 3
        if self.attribute is None:
            return 5
        return {"step": 0, "backward": 1, "zero_grad": 1}.get(self.method or "", 4)


def pattern_of(invariant: Invariant) -> Pattern:
    """Return the kind of an invariant's claim."""
    params = invariant.params
    function = next((name for name in map(function_of, params) if name is not None), None)
    variables = [param for param in params if isinstance(param, VarTypeParam | VarNameParam)]
    quantified = [param for param in variables if isinstance(param, VarTypeParam)]
    return Pattern(
        relation=invariant.relation,
        method=None if function is None else function.rpartition(".")[2],
        attribute=next((param.attr_name for param in variables), None),
        quantifier=next((param.quantifier for param in quantified), None),
        scope=next((param.scope for param in params if isinstance(param, ScopeParam)), None),
    )


_FROZEN_STEP = """\
whether the optimizer was made over parameters that are frozen (requires_grad False) or that the
model no longer uses, whether anything gives them a gradient, whether the learning rate is zero, and
whether a gradient scaler skips the steps"""
_LEFT_BEHIND = """\
whether these parameters are frozen (requires_grad False), whether the loss still depends on them
(detach, no_grad, a checkpointed block), and whether the optimizer holds them or others, made before
the model was replaced, moved or wrapped"""
_NO_GRADIENT = """\
whether these parameters are frozen (requires_grad False), where the graph from the loss to them is
cut (detach, no_grad, item, a tensor made anew, a checkpointed block), and whether zero_grad is
called between two backward calls whose gradients are not meant to add up"""
_NOT_CLEARED = """\
whether the optimizer holds the parameters that the model trains, and whether any gradient reached
them; a gradient that is never cleared is added up over the steps"""
_UNTIED = """\
what took the tied weights apart: an assignment to one of the names, a conversion or a move of the
model, loading a checkpoint, wrapping"""
_DRIFTING = """\
whether all ranks began with the same weights and go through the wrapped model (DDP), whether
gradients are reduced in this step (no_sync, a call of the inner module), and whether something
changes the weights on one rank only"""
_NOT_DRAWN = """\
where these parameters are made and initialised (torch.ones, zeros, an initialisation that is left
out), and whether a checkpoint that should have been loaded into them was"""
_SKIPPED = """\
whether a setting, a condition or an early return skips what should happen inside the call, and
whether another function stands in its place"""

# For each relation, the first entry that agrees with a pattern in all that it gives holds.
_CAUSES: Mapping[str, tuple[tuple[Mapping[str, str], str], ...]] = {
    "APIContainRelation": (
        ({"method": "step", "attribute": "data", "quantifier": "some"}, _FROZEN_STEP),
        ({"method": "step", "attribute": "data"}, _LEFT_BEHIND),
        ({"method": "backward", "attribute": "grad"}, _NO_GRADIENT),
        ({"method": "zero_grad", "attribute": "grad"}, _NOT_CLEARED),
        ({}, _SKIPPED),
    ),
    "ConsistencyRelation": (({"scope": "ties"}, _UNTIED), ({}, _DRIFTING)),
    "InitialValueRelation": (({}, _NOT_DRAWN),),
}


def usual_causes(pattern: Pattern) -> str:
    """Say what to look at first, or nothing if this kind of claim is not known here."""
    facts = attrs.asdict(pattern)
    for wanted, text in _CAUSES.get(pattern.relation, ()):
        if all(facts[name] == value for name, value in wanted.items()):
            return text.replace("\n", " ")
    return ""
