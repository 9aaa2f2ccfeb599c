"""Lines of old invariant files as invariants of 1.0."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import structure, unstructure
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariant_id import invariant_id
from traincheck_trace_schema.invariants import (
    ConditionGroup,
    Invariant,
    OccasionParam,
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CONSISTENCY = "ConsistencyRelation"
_CONTAIN = "APIContainRelation"
_VAR_EVENTS = "var_events"
_A_PAIR = 2
_STEP_END = OccasionParam(phase="step_end")
_ACROSS_RANKS = ScopeParam(scope="ranks")
_SHOWN = 300  # characters of what a line says that can't be expressed


@attrs.frozen
class Converted:
    """An old invariant in the terms of 1.0."""

    invariant: Invariant
    says_less: bool  # arguments that it asked for are not recorded by 1.0


@attrs.define
class OldLines:
    """The lines of one file that are of 0.x, and what of them can't be expressed."""

    path: Path
    saying_less: int = 0
    _left_out: list[str] = attrs.field(factory=list)

    @property
    def left_out(self) -> int:
        """How many can't be expressed."""
        return len(self._left_out)

    def take(self, line: Mapping[str, Any], where: str) -> Invariant | None:
        """Return a line as an invariant of 1.0; None if it can't be expressed.

        Raises:
            InvariantError: the line is no invariant of 0.x.
        """
        try:
            converted = converted_line(line, where)
        except NotExpressibleError as problem:
            why = str(problem)[:_SHOWN]  # it may quote anything
            self._left_out.append(f"{where}: left out, it can't be expressed in version 1.0: {why}")
            return None
        self.saying_less += converted.says_less
        return converted.invariant

    def told(self) -> Iterator[str]:
        """Yield what a user should know of the lines."""
        yield from self._left_out
        if self.saying_less:
            yield (
                f"{self.path}: invariants of 0.x that say less now: {self.saying_less}; they ask "
                "for what traces of 1.0 do not tell of an argument"
            )


def converted_line(line: Mapping[str, Any], where: str) -> Converted:
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
            name: about_calls(group, name, functions) for name, group in old.precondition.items()
        }
    invariant = Invariant(
        id=invariant_id(old.relation, params, precondition),
        text_description=describe(old.relation, params, precondition),
        relation=old.relation,
        params=params,
        precondition=precondition,
        num_positive_examples=old.num_positive_examples,
        num_negative_examples=old.num_negative_examples,
    )
    return Converted(_checked(invariant), any(each.says_less for each in converted))


def _checked(invariant: Invariant) -> Invariant:
    """Return an invariant as it reads back when it was written.

    Raises:
        NotExpressibleError: it would not: something in it is out of range.
    """
    try:
        return structure(Invariant, unstructure(invariant), error=InvariantError)
    except InvariantError as problem:
        raise NotExpressibleError(str(problem)) from problem


def _insist_that_change_is_seen(params: Params) -> None:
    """Refuse what 0.x saw late: a gradient, when a call was entered, and not when it was computed.

    So it says of `Optimizer.step` that it gives gradients to parameters.
    """
    for each in params:
        if (
            isinstance(each, VarTypeParam | VarNameParam)
            and each.attr_name == "grad"
            and each.post_value != "none"
        ):
            raise NotExpressibleError(
                "TrainCheck 0.x saw a new gradient at the next call that it looked at, not at the "
                "one that computed it"
            )


def _replicas(old: OldInvariant, params: Params) -> tuple[Params, Mapping[str, ConditionGroup]]:
    """Return the claim that replicas on two ranks are equal, if that is what is claimed.

    0.x compared any two variables that its precondition let through, over their lifetimes. That the
    same variable is equal on two ranks when a step ends follows from it.
    """
    if len(params) != _A_PAIR or params[0] != params[1]:
        raise NotExpressibleError("it compares different attributes, or variables of two types")
    if not isinstance(params[0], VarTypeParam):
        raise NotExpressibleError("it is not about all variables of a type")
    first = attrs.evolve(params[0], quantifier="each")
    precondition = {
        name: about_replicas(group, first.var_type) for name, group in old.precondition.items()
    }
    if not precondition:
        raise NotExpressibleError("it is not about the same variable on two ranks")
    return (first, first, _STEP_END, _ACROSS_RANKS), precondition
