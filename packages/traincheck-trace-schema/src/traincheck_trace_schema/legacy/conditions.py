"""The preconditions of old invariants, as conditions on the properties of 1.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from traincheck_trace_schema.invariants import Clause, ConditionGroup, Conjunction
from traincheck_trace_schema.legacy import values
from traincheck_trace_schema.legacy.contexts import AUTOCAST
from traincheck_trace_schema.legacy.old_invariant import (
    NotExpressibleError,
    OldClause,
    OldGroup,
)
from traincheck_trace_schema.legacy.variables import is_told
from traincheck_trace_schema.records import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Translate: TypeAlias = "Callable[[OldClause], tuple[Clause, ...]]"  # none: it always holds

_STAGES = frozenset(get_args(Stage))
_META = "meta_vars."
_CONTEXTS = "meta_vars.context_managers."
_ATTRIBUTES = "attributes."
_RANKS = frozenset(("process_id", "meta_vars._DATA_PARALLEL_RANK"))
# Before the first step, and in it. Scripts that count by hand count from 0, 0.x itself from 1.
_FIRST_STEPS = frozenset((-1, 0, 1))
_BOTH_FIRST = frozenset((0, 1))
_IS_AUTOCAST = Clause(type="exist", prop_name="ctx.autocast.device_type")
# What each of them says when it is entered: those of one device are only that device's.
_AUTOCASTS = {
    AUTOCAST: _IS_AUTOCAST,
    **{
        f"torch.{kind}.amp.autocast_mode.autocast": Clause(
            type="constant", prop_name="ctx.autocast.device_type", values=(kind,)
        )
        for kind in ("cuda", "cpu")
    },
}
# Groups of conditions on one record, the begin of a call. Others may be on several.
_OF_ONE_CALL = frozenset(("parent_func_call_pre", "pre_event", "func_cover", "func_lead"))
_WITHIN_A_STEP = "distinct_arg"  # the group of a claim about calls of one step
_SAME_FOR_REPLICAS = frozenset(
    ("var_name", "var_type", "meta_vars.step", "meta_vars.stage", "attributes.requires_grad")
)


def condition(group: OldGroup, translate: Translate) -> ConditionGroup:
    """Return a precondition, whose clauses `translate` knows.

    Raises:
        NotExpressibleError: a clause has no counterpart; without it the invariant would apply
            elsewhere.
    """
    return ConditionGroup(
        inverted=group.inverted,
        preconditions=tuple(
            Conjunction(clauses=_translated(one.clauses, translate)) for one in group.preconditions
        ),
    )


def about_calls(group: OldGroup, name: str, functions: Iterable[str]) -> ConditionGroup:
    """Return a precondition on the begin of calls, of these functions.

    Args:
        group: The precondition.
        name: What it is called, by which is known how many calls it is about.
        functions: Those that the claim names.
    """
    known = frozenset(functions)
    if name in _OF_ONE_CALL:
        return condition(group, lambda old: _of_call(old, known, is_exception=group.inverted))
    is_one_step = name == _WITHIN_A_STEP
    return condition(
        group,
        lambda old: (
            _between_calls(old, is_one_step=is_one_step)
            if old.type in {"consistent", "unequal"}
            else _of_call(old, known, is_exception=group.inverted)
        ),
    )


def about_replicas(group: OldGroup, var_type: str) -> ConditionGroup:
    """Return a precondition on two variables, if it says that they are replicas on two ranks."""
    if group.inverted:
        raise NotExpressibleError("its precondition excludes pairs of variables")
    for one in group.preconditions:
        clauses = () if one.clauses == "Unconditional" else one.clauses
        if not any(old.type == "unequal" and old.prop_name in _RANKS for old in clauses):
            raise NotExpressibleError("it is not about the same variable on two ranks")
    return condition(group, lambda old: _of_replicas(old, var_type))


def _translated(old: Any, translate: Translate) -> Any:
    if old == "Unconditional":
        return old
    clauses = dict.fromkeys(new for each in old for new in translate(each))
    return tuple(clauses) or "Unconditional"


def _of_call(
    old: OldClause, functions: frozenset[str], *, is_exception: bool
) -> tuple[Clause, ...]:
    # Of one record, `consistent` and `unequal` say no more than that the property is there.
    is_constant, name = old.type == "constant", old.prop_name
    if name.startswith(_CONTEXTS):
        return _autocast(old, name.removeprefix(_CONTEXTS))
    if name == "meta_vars.step":
        return (_first_step(old, is_exception=is_exception),) if is_constant else ()
    if name == "meta_vars.stage":
        return (_stage(old) if is_constant else Clause(type="exist", prop_name="run.stage"),)
    if name == "function" and (not is_constant or functions.issuperset(old.allowed)):
        return ()
    if name in ("process_id", "thread_id"):
        if not is_constant:
            return ()
        raise NotExpressibleError(f"it is bound to one {name} of the run that it was learnt from")
    raise _no_counterpart(old)


def _between_calls(old: OldClause, *, is_one_step: bool) -> tuple[Clause, ...]:
    """Return what compares calls with one another."""
    name = old.prop_name
    if old.type == "consistent":
        if name == "meta_vars.stage":
            return (Clause(type="consistent", prop_name="run.stage"),)
        if name == "meta_vars.step" and is_one_step:
            return ()
    what = "differs" if old.type == "unequal" else "is the same"
    raise NotExpressibleError(f"its precondition says that {name} {what} in several records")


def _of_replicas(old: OldClause, var_type: str) -> tuple[Clause, ...]:
    name = old.prop_name
    if old.type == "unequal":
        if name in _RANKS or name == "thread_id" or _is_address(name):
            return ()
        raise NotExpressibleError(f"its precondition says that {name} differs")
    if old.type in {"consistent", "exist"}:
        if name in _SAME_FOR_REPLICAS or _is_of_shape(name):
            return ()
        raise _no_counterpart(old)
    if name == "meta_vars.stage":
        return (_stage(old),)
    if name == "var_type" and old.allowed == (var_type,):
        return ()
    attribute = name.removeprefix(_ATTRIBUTES)
    is_mark = attribute != name and attribute not in ("data", "grad") and is_told(attribute)
    if name == "var_name" or is_mark:
        return (_constant(old, "var.name" if name == "var_name" else f"var.{attribute}"),)
    raise _no_counterpart(old)


def _first_step(old: OldClause, *, is_exception: bool) -> Clause:
    """Return whether it is the first step; as an exception it may be wider, but not otherwise."""
    steps = set(old.allowed)
    is_first = bool(steps) and steps <= _FIRST_STEPS and bool not in map(type, steps)
    if is_first and (is_exception or steps >= _BOTH_FIRST):
        return Clause(type="constant", prop_name="run.first_step", values=(True,))
    raise NotExpressibleError(f"it depends on the number of a step, {_listed(old.allowed)}")


def _stage(old: OldClause) -> Clause:
    if not old.allowed or not _STAGES.issuperset(old.allowed):
        raise NotExpressibleError(f"it depends on the stage {_listed(old.allowed)}")
    return _constant(old, "run.stage")


def _autocast(old: OldClause, manager: str) -> tuple[Clause, ...]:
    if manager not in _AUTOCASTS:
        raise NotExpressibleError(f"traces of 1.0 do not have the context manager {manager}")
    is_entered = _AUTOCASTS[manager]
    if not old.path and old.type != "constant":
        return (is_entered,)
    (argument, *deeper), allowed = old.path or ("",), old.allowed
    if old.type == "constant" and not deeper:
        if argument == "enabled" and allowed == (True,):
            return (is_entered,)
        texts = tuple(one for one in allowed if isinstance(one, str))
        if argument in ("dtype", "device_type") and texts and texts == allowed:
            named = tuple(map(values.dtype_name, texts))
            asked = Clause(type="constant", prop_name=f"ctx.autocast.{argument}", values=named)
            return (asked,) if is_entered is _IS_AUTOCAST else (is_entered, asked)
    raise NotExpressibleError(f"it depends on the argument {argument!r} of {manager}")


def _constant(old: OldClause, prop_name: str) -> Clause:
    return Clause(type="constant", prop_name=prop_name, values=old.allowed)


def _is_address(name: str) -> bool:
    return values.is_address(name.removeprefix(_ATTRIBUTES))


def _is_of_shape(name: str) -> bool:
    """Whether torch gives it from shape, dtype and device, or it marks a part of a tensor."""
    attribute = name.removeprefix(_ATTRIBUTES)
    if attribute == name or attribute in ("data", "grad") or values.is_address(attribute):
        return False
    return not is_told(attribute) or attribute == "tensor_model_parallel"


def _no_counterpart(old: OldClause) -> NotExpressibleError:
    what = "differs" if old.type == "unequal" else f"is {_listed(old.allowed)}"
    condition = f"{old.prop_name} {what if old.type != 'exist' else 'is there'}"
    return NotExpressibleError(f"its precondition, {condition}, has no counterpart")


def _listed(allowed: Iterable[Any]) -> str:
    return " or ".join(map(repr, allowed)) or "not told"
