"""Says in a sentence what an old invariant claims; many of 0.x's own say nothing."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from traincheck_trace_schema.invariants import (
    APIParam,
    InputOutputParam,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from traincheck_trace_schema.invariants import ConditionGroup, Param

_WORDS = {"none": "None", "non_zero": "non-zero", "non_none": "a value"}
_UNCONDITIONAL = "Unconditional"


def describe(
    relation: str, params: Sequence[Param], precondition: Mapping[str, ConditionGroup]
) -> str:
    """Say in one sentence what params claim, and if there is a condition."""
    sentence = _SENTENCES.get(relation, _of_unknown)
    claim = sentence(params) if params else relation
    is_always = all(
        not group.inverted and any(one.clauses == _UNCONDITIONAL for one in group.preconditions)
        for group in precondition.values()
    )
    return claim if is_always else f"{claim}, under its precondition"


def _contains(params: Sequence[Param]) -> str:
    first, *others = params
    return f"Each call of {_named(first)} {' and '.join(map(_contained, others))}"


def _contained(child: Param) -> str:
    if not isinstance(child, VarTypeParam | VarNameParam):
        return f"calls {_named(child)}"
    change = f"changes {_named(child)}"
    if child.pre_value == child.post_value == "anything":
        return change
    before, after = (_WORDS.get(value, value) for value in (child.pre_value, child.post_value))
    return f"{change} from {before} to {after}"


def _consistent(params: Sequence[Param]) -> str:
    name = _named(params[0])
    return f"{name[:1].upper()}{name[1:]} is equal on all ranks when a step ends"


def _has_output(params: Sequence[Param]) -> str:
    function, *others = params
    constants = [
        f"{each.attr_name} {_shown(each.const_value)}"
        for each in others
        if isinstance(each, VarTypeParam | VarNameParam)
    ]
    return f"Each tensor that {_named(function)} returns has {' and '.join(constants)}"


def _input_is_output(params: Sequence[Param]) -> str:
    return f"In each call, {_named(params[0])} equals {_named(params[-1])}"


def _is_bounded(params: Sequence[Param]) -> str:
    return f"In each call, {_named(params[0])} is at least {_named(params[-1])}"


def _covers(params: Sequence[Param]) -> str:
    names = list(map(_named, params))
    pairs = itertools.pairwise(names)
    return "; ".join(f"Each call of {after} is preceded by {before}" for before, after in pairs)


def _leads(params: Sequence[Param]) -> str:
    names = list(map(_named, params))
    pairs = itertools.pairwise(names)
    return "; ".join(f"Each call of {before} is followed by {after}" for before, after in pairs)


def _is_distinct(params: Sequence[Param]) -> str:
    return f"Within a step, no two calls of {_named(params[0])} get the same arguments"


def _of_unknown(params: Sequence[Param]) -> str:
    return f"A claim about {', '.join(map(_named, params))}"


_SENTENCES: Mapping[str, Callable[[Sequence[Param]], str]] = {
    "APIContainRelation": _contains,
    "ConsistencyRelation": _consistent,
    "ConsistentOutputRelation": _has_output,
    "ConsistentInputOutputRelation": _input_is_output,
    "ThresholdRelation": _is_bounded,
    "FunctionCoverRelation": _covers,
    "FunctionLeadRelation": _leads,
    "DistinctArgumentRelation": _is_distinct,
}


def _named(param: Param) -> str:
    if isinstance(param, APIParam):
        asked = f" with the given {', '.join(param.arguments)}" if param.arguments else ""
        raised = f" that raise {param.exception}" if param.exception else ""
        return f"{param.api_full_name}{asked}{raised}"
    if isinstance(param, VarTypeParam):
        return f"the {param.attr_name} of a {param.var_type}"
    if isinstance(param, VarNameParam):
        return f"the {param.attr_name} of {param.var_name}"
    if isinstance(param, InputOutputParam):
        path = "".join(f"[{step!r}]" for step in param.additional_path or ())
        index = "" if param.index is None else f"[{param.index}]"
        return f"{param.name}{index}{path} of {param.api_name}"
    return repr(param)


def _shown(value: object) -> str:
    if isinstance(value, dict) and len(value) == 1:
        return str(next(iter(value.values())))
    return repr(value)
