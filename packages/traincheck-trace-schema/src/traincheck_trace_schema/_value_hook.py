"""How raw values are checked, and how one is read as an object of its class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, get_type_hints

import attrs
import cattrs

from traincheck_trace_schema._hooks import Hook, as_object, inside
from traincheck_trace_schema.constraints import Mismatch, shown
from traincheck_trace_schema.values import (
    PAYLOADS,
    BytesValue,
    CutText,
    CutValue,
    DeviceValue,
    DictValue,
    DtypeValue,
    ObjectValue,
    SetValue,
    TensorValue,
    TypedValue,
)

_PLAIN = frozenset({str, int, float, bool, NoneType})


def value_hook(converter: cattrs.Converter) -> Hook:
    """Make the hook that lets a raw value pass as it is, or refuses it."""
    hooks: dict[str, tuple[Hook, Any]] = {}  # filled at first use: values nest in payloads

    def check(value: Any, _: Any = None) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list:
            for item in value:
                check(item)
            return value
        if not hooks:
            hooks.update(
                (key, (_payload_hook(converter, cls), cls)) for key, cls in PAYLOADS.items()
            )
        if kind is dict and len(value) == 1:
            ((key, payload),) = value.items()
            if key in hooks:
                hook, cls = hooks[key]
                try:
                    hook(payload, cls)
                except (Mismatch, cattrs.BaseValidationError) as problem:
                    raise inside(key, problem) from problem
                return value
        raise Mismatch(
            "must be a text, a number, true, false, null, a list, or an object with one key of "
            f"{', '.join(PAYLOADS)}; got {shown(value)}"
        )

    return check


def read_value(converter: cattrs.Converter, value: Any) -> TypedValue:
    """Read a value that was checked."""
    if type(value) in _PLAIN:
        plain: TypedValue = value
        return plain
    read = functools.partial(read_value, converter)
    if isinstance(value, list):
        return [read(item) for item in value]
    ((key, payload),) = value.items()
    if key in _CLASSES:
        typed: TypedValue = converter.structure(payload, _CLASSES[key])
        return typed
    return _READERS[key](read, payload)


_CLASSES: Mapping[str, type] = {
    "tensor": TensorValue,
    "object": ObjectValue,
    "text": CutText,
    "bytes": BytesValue,
}
_Read = Callable[[Any], TypedValue]
_READERS: Mapping[str, Callable[[_Read, Any], TypedValue]] = {
    "dtype": lambda _, name: DtypeValue(name),
    "device": lambda _, name: DeviceValue(name),
    "cut": lambda _, what: CutValue(what),
    "float": lambda _, word: float(word),
    "int": lambda _, digits: _integer(digits),
    "tuple": lambda read, items: tuple(map(read, items)),
    "set": lambda read, items: SetValue(tuple(map(read, items))),
    "dict": lambda read, pairs: DictValue(tuple((read(key), read(item)) for key, item in pairs)),
}


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as problem:  # Python's limit of digits, against hostile input
        raise Mismatch(f"must be an integer of fewer digits than {len(digits)}") from problem


def _payload_hook(converter: cattrs.Converter, cls: Any) -> Hook:
    if attrs.has(cls):
        return _fields_check(converter, cls)
    hook: Hook = converter.get_structure_hook(cls)
    return hook


def _fields_check(converter: cattrs.Converter, cls: type) -> Hook:
    """Check the fields of an object without making it: half the time of making it."""
    hints = get_type_hints(cls, include_extras=True)
    fields = {
        field.name: (converter.get_structure_hook(hints[field.name]), hints[field.name])
        for field in attrs.fields(cls)
    }
    required = {field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING}

    def check_fields(payload: Any, _: Any) -> None:
        if not (payload if type(payload) is dict else as_object(payload)).keys() >= required:
            missing = min(required - payload.keys())
            raise inside(missing, KeyError(missing))
        for name, item in payload.items():
            if name in fields:
                hook, hint = fields[name]
                try:
                    hook(item, hint)
                except (Mismatch, cattrs.BaseValidationError) as problem:
                    raise inside(name, problem) from problem

    return check_fields
