"""When a variable counts as changed, and what is said where it was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.conditions.properties import (
    module_name,
    object_name,
    optimizer_name,
    variable_properties,
)
from traincheck_relations.value import (
    has_changed,
    is_comparable,
    is_finite,
    payload,
    value_class,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from traincheck_relations.api import Call, VariableState
    from traincheck_trace_schema.invariants import VarTypeParam

_CLASSED = ("grad",)  # attributes whose values are told apart as none, zero, non_zero
_CLEARED = ("none", "zero")
_MAX_NAMED = 8
# Weights of fewer bits are too coarse to train: there an update that is lost is a bug.
_PRECISE = frozenset(("float32", "float64", "complex64", "complex128"))


def is_told(one: VariableState, other: VariableState, attribute: str) -> bool:
    """Whether the trace says enough of an attribute in both states to compare them."""
    return is_comparable(one, attribute) and is_comparable(other, attribute)


def classes(before: VariableState, after: VariableState, attribute: str) -> tuple[str, str]:
    """Return what a change leads from and to, as invariants say it."""
    if attribute not in _CLASSED:
        return "anything", "anything"
    return value_class(before.attributes[attribute]), value_class(after.attributes[attribute])


def applies(child: VarTypeParam, before: VariableState, after: VariableState) -> bool:
    """Whether the change that `child` speaks of could come for this variable."""
    return (
        before.type == child.var_type
        and is_told(before, after, child.attr_name)
        and matches(child.pre_value, before, child.attr_name)
    )


def is_change(child: VarTypeParam, before: VariableState, after: VariableState) -> bool:
    """Whether a variable made the change that `child` speaks of."""
    if not has_changed(before, after, child.attr_name):
        return False
    if child.pre_value == "non_zero" and child.post_value in _CLEARED:
        # A program may have gradients cleared to zero, or to None: it is cleared either way.
        became = value_class(after.attributes[child.attr_name])
        return matches("non_zero", before, child.attr_name) and became in _CLEARED
    return matches(child.pre_value, before, child.attr_name) and matches(
        child.post_value, after, child.attr_name
    )


def matches(symbol: str, state: VariableState, attribute: str) -> bool:
    """Whether the value of an attribute is one that a symbol of `VarTypeParam` stands for."""
    if symbol == "anything":
        return True
    found = value_class(state.attributes[attribute])
    return found != "none" if symbol == "non_none" else found == symbol


def is_left_open(
    child: VarTypeParam, before: VariableState, after: VariableState, resting: Collection[int] = ()
) -> bool:
    """Whether it says nothing that one variable made the change or not.

    A gradient that is zero everywhere leaves open if the data changes: by momentum or weight decay
    it does. So does a learning rate of zero. A gradient may come out as zero: a unit was not used,
    or not active. What is frozen gets no gradient, and without one nothing moves: that it should
    have had one is claimed of the backward.

    Args:
        child: The change.
        before: The variable when the call began.
        after: The variable when it ended.
        resting: Ids of the variables whose learning rate is zero, or whose update may be lost.
    """
    is_frozen = before.attributes.get("requires_grad") is False
    if child.attr_name == "data":
        is_still = value_class(before.attributes.get("grad", 0)) in _CLEARED
        return is_frozen or before.id in resting or is_still
    became = value_class(after.attributes[child.attr_name])
    return child.post_value == "non_zero" and (is_frozen or became == "zero")


def is_call_left_open(
    child: VarTypeParam,
    call: Call,
    pairs: Sequence[tuple[VariableState, VariableState]],
    resting: Collection[int] = (),
) -> bool:
    """Whether it says nothing that no variable at all made the change in a call.

    Where there is nothing to clear, nothing is cleared; where gradients are added up, none appears
    that is there already, and what has none then is frozen or not used. Data may stay if each
    gradient that the caller could use is zero, or its learning rate.
    """
    if child.pre_value == "none" and any(map(_is_added_up, pairs)):
        return True
    if child.pre_value != "anything":
        return not any(matches(child.pre_value, before, child.attr_name) for before, _ in pairs)
    if child.attr_name != "data":
        return False
    usable = [one for one in of_caller(call, pairs) if _gradient_class(one) != "none"]
    return bool(usable) and all(
        one.id in resting or _gradient_class(one) == "zero" for one in usable
    )


def is_still(pairs: Iterable[tuple[VariableState, VariableState]]) -> bool:
    """Whether no variable changed its data, as far as the trace tells."""
    return not any(
        is_told(before, after, "data") and has_changed(before, after, "data")
        for before, after in pairs
    )


def _is_added_up(pair: tuple[VariableState, VariableState]) -> bool:
    """Whether something was added to a gradient that was there, and stays."""
    before, after = pair
    was_there = _gradient_class(before) == "non_zero" == _gradient_class(after)
    return was_there and is_told(before, after, "grad") and has_changed(before, after, "grad")


def is_step_skipped(child: VarTypeParam, states: Iterable[VariableState]) -> bool:
    """Whether some gradient is not finite: a scaler then skips the step, and data stays."""
    return child.attr_name == "data" and not all(is_finite(state, "grad") for state in states)


def may_be_lost(pairs: Iterable[tuple[VariableState, VariableState]]) -> frozenset[int]:
    """Return the ids of the variables whose update may be lost in rounding, with nothing wrong.

    What follows a layer may cancel its bias, as a batch norm does, and the softmax of attention
    that of the keys. Then the gradient of the bias is what rounding leaves of zero. So a vector
    beside a matrix of the same module, which moved, says nothing.
    """
    moved: set[str] = set()
    vectors: list[VariableState] = []
    for before, after in pairs:
        tensor = payload(before.attributes.get("data"), "tensor")
        if tensor and tensor["shape"] is not None and is_told(before, after, "data"):
            if not _is_vector(tensor["shape"]):
                if has_changed(before, after, "data"):
                    moved.update(map(_module_of, before.names))
            elif tensor["dtype"] in _PRECISE:
                vectors.append(before)
    return frozenset(one.id for one in vectors if not moved.isdisjoint(map(_module_of, one.names)))


def _is_vector(shape: Sequence[int]) -> bool:
    return len(shape) <= 1


def _module_of(name: str) -> str:
    return name.rpartition(".")[0]


def _gradient_class(state: VariableState) -> str:
    return value_class(state.attributes.get("grad"))


def of_caller(
    call: Call, pairs: Iterable[tuple[VariableState, VariableState]]
) -> list[VariableState]:
    """Return the variables that a call is about, as they were when it began.

    Those that the called optimizer holds, or that are in the called module; all of them if there
    are none, or if it is no method of such an object.
    """
    states = [before for before, _ in pairs]
    if (holder := optimizer_name(call)) is not None:
        return [one for one in states if holder in one.holders] or states
    if (module := module_name(call)) is not None:
        inside = f"{module}."
        return [one for one in states if any(map(_begins(inside), one.names))] or states
    return states


def concerned(
    call: Call, attribute: str, pairs: Sequence[tuple[VariableState, VariableState]]
) -> list[tuple[VariableState, VariableState]]:
    """Return of all variables, before and after, those that a change of an attribute is about.

    Of those that the call is about, these are the ones in models of which it changed something: a
    backward through one of two models is not about the other. All, if it changed nothing.
    """
    own = {one.id for one in of_caller(call, pairs)}
    touched = {
        _model_of(before)
        for before, after in pairs
        if is_told(before, after, attribute) and has_changed(before, after, attribute)
    }
    return [
        pair
        for pair in pairs
        if pair[0].id in own and (not touched or _model_of(pair[0]) in touched)
    ]


def _model_of(state: VariableState) -> str:
    return state.names[0].partition(".")[0]


def _begins(prefix: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(prefix)


def in_words(symbol: str) -> str:
    """Write a symbol of `VarTypeParam` as a sentence has it."""
    return {"none": "None", "non_zero": "non-zero", "non_none": "a value"}.get(symbol, symbol)


def _facts(state: VariableState) -> str:
    """Say what a person would ask first about a parameter that did not change."""
    facts = variable_properties(state)
    said = []
    if facts.get("var.requires_grad") is False:
        said.append("requires_grad is False")
    if facts.get("var.grad") == "none":
        said.append("it has no gradient")
    if not state.holders:
        said.append("no optimizer holds it")
    return f" ({', '.join(said)})" if said else ""


def what_was_left(
    child: VarTypeParam, call: Call, before: VariableState, after: VariableState
) -> str:
    """Say how a call left a variable that did not make its change."""
    attribute = child.attr_name
    if not has_changed(before, after, attribute):
        return f"{call.function} left {before.names[0]}.{attribute} as it was{_facts(before)}"
    became = in_words(value_class(after.attributes[attribute]))
    return f"{call.function} left {before.names[0]}.{attribute} {became}"


def what_was_not_changed(
    child: VarTypeParam, call: Call, pairs: Sequence[tuple[VariableState, VariableState]]
) -> str:
    """Say that no variable changed, and how those stand that the caller holds."""
    states = of_caller(call, pairs)
    is_holder = object_name(call) in states[0].holders
    frozen = [one for one in states if one.attributes.get("requires_grad") is False]
    without = [one for one in states if value_class(one.attributes.get("grad", 0)) == "none"]
    others = [one for one in states if not matches(child.pre_value, one, child.attr_name)]
    names = ", ".join(one.names[0] for one in states[:_MAX_NAMED])
    more = f" and {len(states) - _MAX_NAMED} more" if len(states) > _MAX_NAMED else ""
    whose = f"{len(states)} parameters{' that it holds' if is_holder else ''} ({names}{more})"
    what = f"{call.function} changed the {child.attr_name} of none of the {whose}"
    if child.pre_value != "anything" or child.post_value != "anything":
        what += f" from {in_words(child.pre_value)} to {in_words(child.post_value)}"
    if child.pre_value == "none" and len(others) == len(states):
        return f"{what}: all had one already, which was not cleared before and is added to"
    said = [f"{len(frozen)} have requires_grad False"] if frozen else []
    said += [f"{len(without)} have no gradient"] if without else []
    return f"{what}; {' and '.join(said)}" if said else what
