"""The params of old invariants as those of 1.0."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, cast

import attrs

from traincheck_trace_schema.invariants import (
    APIParam,
    Free,
    InputOutputParam,
    Param,
    VarNameParam,
    VarTypeParam,
)
from traincheck_trace_schema.legacy import values
from traincheck_trace_schema.legacy.old_invariant import NotExpressibleError
from traincheck_trace_schema.legacy.variables import is_told, variable_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_trace_schema.values import Json

_SYMBOLS: Mapping[Any, str] = {
    None: "none",
    "non_zero": "non_zero",
    "non_none": "non_none",
    "anything": "anything",
}
_CONSTRAINTS = ("pre_value", "post_value", "const_value")
_OF_TENSORS = frozenset(("dtype", "shape", "ndim", "requires_grad"))
_TENSOR = "torch.Tensor"
_LOST = "NOT SERIALIZABLE"  # how 0.x begins what it could not write
_CLASS = re.compile(r"<class '(.+)'>")


@attrs.frozen
class ConvertedParam:
    """A param of 1.0, and whether it constrains less than the old one did."""

    param: Param
    says_less: bool = False


def param(old: Mapping[str, Any]) -> ConvertedParam:
    """Return what a param of 0.x is in 1.0.

    Raises:
        NotExpressibleError: it has no counterpart.
    """
    kind = old.get("param_type")
    if kind == "APIParam":
        return _api(old)
    if kind == "VarTypeParam":
        is_change = "const_value" not in old
        quantifier: Literal["each", "some"] = "some" if is_change else "each"
        return ConvertedParam(VarTypeParam(**_variable(old), quantifier=quantifier))
    if kind == "VarNameParam":
        return ConvertedParam(VarNameParam(**_variable(old), var_name=_text(old, "var_name")))
    if kind == "InputOutputParam":
        return ConvertedParam(_input_output(old))
    raise NotExpressibleError(f"a param of type {kind!r} is not known")


def _api(old: Mapping[str, Any]) -> ConvertedParam:
    constraint = old.get("arguments")
    asked = constraint.get("args") if isinstance(constraint, dict) else {}
    asked = asked if isinstance(asked, dict) else {}
    arguments = {name: _argument(item) for name, item in asked.items()}
    exception = old.get("exception")
    return ConvertedParam(
        APIParam(
            api_full_name=_text(old, "api_full_name"),
            exception=None if exception is None else str(exception),
            arguments={name: item for name, (item, _) in arguments.items() if item != _NOTHING},
        ),
        says_less=any(is_less for _, is_less in arguments.values()),
    )


_NOTHING: Json = {"cut": "all"}


def _argument(old: Any) -> tuple[Json, bool]:
    """Return what an argument must be, `_NOTHING` if traces of 1.0 can't tell; is it less?"""
    if not isinstance(old, dict) or len(old) != 1:
        return _NOTHING, True
    ((kind, payload),) = old.items()
    if values.is_tensor_type(kind):
        return _tensor(payload if isinstance(payload, dict) else {})
    value = values.value(old)
    if not values.is_whole(value):
        return _NOTHING, True
    found = value.get("object") if isinstance(value, dict) else None
    if not isinstance(found, dict):
        return value, False
    name = _CLASS.sub(r"\1", kind)
    if "." not in name:  # a name without its module, as some releases of 0.x wrote
        return _NOTHING, True
    return {"object": {"type": name}}, bool(found.get("attributes"))


def _tensor(fields: Mapping[str, Any]) -> tuple[Json, bool]:
    """Return what was asked of a tensor; its memory, gradient and flags are not recorded."""
    attributes: dict[str, Json] = {
        name: values.plain(item)
        for name, item in fields.items()
        if name in _OF_TENSORS and item is not None
    }
    if isinstance(dtype := attributes.get("dtype"), str):
        attributes["dtype"] = {"dtype": values.dtype_name(dtype)}
    return {"object": {"type": _TENSOR, "attributes": attributes}}, True


def _variable(old: Mapping[str, Any]) -> dict[str, Any]:
    attribute = _text(old, "attr_name")
    for field in _CONSTRAINTS:
        if isinstance(old.get(field), str) and old[field].startswith(_LOST):
            raise NotExpressibleError(f"TrainCheck 0.x lost the {field} of {attribute!r}")
    if values.is_address(attribute):
        raise NotExpressibleError(f"{attribute!r} is an address, which nothing follows from")
    # A constant is one of the tensors that a call returns, a change one of a variable.
    if not (attribute in _OF_TENSORS if "const_value" in old else is_told(attribute)):
        raise NotExpressibleError(f"traces of 1.0 do not have the attribute {attribute!r}")
    return {
        "var_type": variable_type(_text(old, "var_type")),
        "attr_name": attribute,
        "pre_value": _symbol(old, "pre_value"),
        "post_value": _symbol(old, "post_value"),
        "const_value": _constant(attribute, old["const_value"])
        if "const_value" in old
        else Free.ANY,
    }


def _symbol(old: Mapping[str, Any], field: str) -> str:
    value = old.get(field, "anything")
    try:
        return _SYMBOLS[value]
    except (KeyError, TypeError):
        raise NotExpressibleError(
            f"{field} {value!r} of the attribute {old['attr_name']!r} has no counterpart, which is "
            f"{', '.join(sorted(_SYMBOLS.values()))}"
        ) from None


def _constant(attribute: str, value: Any) -> Json:
    if attribute == "dtype" and isinstance(value, str):
        return {"dtype": values.dtype_name(value)}
    return None if value is None else values.plain(value)


def _input_output(old: Mapping[str, Any]) -> InputOutputParam:
    path, index, is_input = old.get("additional_path"), old.get("index"), old.get("is_input")
    if path is not None and not isinstance(path, list):
        raise NotExpressibleError(f"field 'additional_path' must be a list or null, got {path!r}")
    if type(index) is not int and index is not None:
        raise NotExpressibleError(f"field 'index' must be an integer or null, got {index!r}")
    keys = tuple(_key(step) for step in path or ())
    kind = _CLASS.sub(r"\1", _text(old, "type"))
    if keys and values.is_tensor_type(kind) and keys[0] not in _OF_TENSORS:
        raise NotExpressibleError(f"traces of 1.0 do not have {keys[0]!r} of a tensor")
    return InputOutputParam(
        name=_text(old, "name"),
        index=index,
        type=kind,
        additional_path=keys or None,
        api_name=_text(old, "api_name"),
        is_input=bool(is_input),
    )


def _key(step: Any) -> str | int:
    if type(step) not in (str, int):
        raise NotExpressibleError(f"a path leads through {step!r}")
    return cast("str | int", step)


def _text(old: Mapping[str, Any], field: str) -> str:
    text = old.get(field)
    if not isinstance(text, str) or not text:
        raise NotExpressibleError(f"field {field!r} of a param must be a text, got {text!r}")
    return text
