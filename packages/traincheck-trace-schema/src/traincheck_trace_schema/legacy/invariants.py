"""Lines of old invariant files as invariants of 1.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariants import (
    ConditionGroup,
    OccasionParam,
    Param,
    Params,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
    function_of,
)
from traincheck_trace_schema.legacy.conditions import about_calls, about_replicas
from traincheck_trace_schema.legacy.description import describe
from traincheck_trace_schema.legacy.old_invariant import NotExpressibleError, OldInvariant
from traincheck_trace_schema.legacy.params import param

_CONSISTENCY = "ConsistencyRelation"
_CONTAIN = "APIContainRelation"
_VAR_EVENTS = "var_events"
_A_PAIR = 2
_STEP_END = OccasionParam(phase="step_end")
_ACROSS_RANKS = ScopeParam(scope="ranks")
_CLEARED = ("none", "zero")


@attrs.frozen(kw_only=True)
class Claim:
    """What an old invariant claims, in the terms of 1.0."""

    relation: str
    text_description: str
    params: Params
    precondition: Mapping[str, ConditionGroup]
    num_positive_examples: int | None
    num_negative_examples: int | None
    says_less: bool  # arguments that it asked for are not recorded by 1.0


@attrs.define
class OldLines:
    """The lines of one file that are of 0.x, and what of them can't be expressed."""

    path: Path
    _left_out: list[str] = attrs.field(factory=list)
    _saying_less: int = 0

    def take(self, line: Mapping[str, Any], where: str) -> Claim | None:
        """Return what a line claims; None if it can't be expressed.

        Raises:
            InvariantError: the line is no invariant of 0.x.
        """
        try:
            claim = claim_of(line, where)
        except NotExpressibleError as problem:
            self._left_out.append(
                f"{where}: left out, it can't be expressed in version 1.0: {problem}"
            )
            return None
        self._saying_less += claim.says_less
        return claim

    def told(self) -> Iterator[str]:
        """Yield what a user should know of the lines."""
        yield from self._left_out
        if self._saying_less:
            yield (
                f"{self.path}: invariants of 0.x that say less now: {self._saying_less}; they ask "
                "for what traces of 1.0 do not tell of an argument"
            )


def claim_of(line: Mapping[str, Any], where: str) -> Claim:
    """Return what a line of an old invariant file claims.

    Raises:
        InvariantError: the line is no invariant of 0.x.
        NotExpressibleError: what it says has no counterpart in 1.0.
    """
    old = structure(OldInvariant, line, where=where, error=InvariantError)
    converted = [param(each) for each in old.params]
    params = tuple(each.param for each in converted)
    if old.relation == _CONSISTENCY:
        params, precondition = _replicas(old, params)
    else:
        if old.relation == _CONTAIN:
            _insist_that_change_is_seen(params)
        functions = [name for each in params if (name := function_of(each)) is not None]
        if _VAR_EVENTS in old.precondition:
            raise NotExpressibleError("it is about variables that a call left as they were")
        precondition = {
            name: about_calls(group, functions) for name, group in old.precondition.items()
        }
    return Claim(
        relation=old.relation,
        text_description=describe(old.relation, params, precondition),
        params=params,
        precondition=precondition,
        num_positive_examples=old.num_positive_examples,
        num_negative_examples=old.num_negative_examples,
        says_less=any(each.says_less for each in converted),
    )


def _insist_that_change_is_seen(params: Sequence[Param]) -> None:
    """Refuse what 0.x saw late: a gradient, when a call was entered, and not when it was computed.

    So it says of `Optimizer.step` that it gives gradients to parameters.
    """
    for each in params:
        if (
            isinstance(each, VarTypeParam | VarNameParam)
            and each.attr_name == "grad"
            and each.post_value not in _CLEARED
        ):
            raise NotExpressibleError(
                "TrainCheck 0.x saw a new gradient at the next call that it looked at, not at the "
                "one that computed it"
            )


def _replicas(
    old: OldInvariant, params: Sequence[Param]
) -> tuple[Params, Mapping[str, ConditionGroup]]:
    """Return the claim that replicas on two ranks are equal, if that is what is claimed.

    0.x compared any two variables that its precondition let through, over their lifetimes. That the
    same variable is equal on two ranks when a step ends follows from it.
    """
    if len(params) != _A_PAIR or params[0] != params[1] or not isinstance(params[0], VarTypeParam):
        raise NotExpressibleError("it compares different attributes, or variables of two types")
    first = attrs.evolve(params[0], quantifier="each")
    precondition = {
        name: about_replicas(group, first.var_type) for name, group in old.precondition.items()
    }
    if not precondition:
        raise NotExpressibleError("it is not about the same variable on two ranks")
    return (first, first, _STEP_END, _ACROSS_RANKS), precondition
