"""The cattrs converter: how each type that stands in a document's class is read and written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from traincheck_trace_schema import _hooks
from traincheck_trace_schema._hooks import Hook, as_object, inside
from traincheck_trace_schema._value_hook import value_hook
from traincheck_trace_schema.constraints import Constraint, Mismatch, shown
from traincheck_trace_schema.invariants import Param
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.values import Encoded

_TAGS = ("kind", "param_type")
_ALWAYS_WRITTEN = frozenset({"schema", "version"})
_SCALARS = frozenset({str, int, float, bool, NoneType})


def make_converter() -> cattrs.Converter:
    """Make the one converter."""
    converter = cattrs.Converter(
        omit_if_default=True, unstruct_collection_overrides={tuple: list, Mapping: dict}
    )
    for scalar, (expected, types) in _hooks.SCALARS.items():
        converter.register_structure_hook(scalar, _hooks.scalar(expected, *types))
    check_value = value_hook(converter)
    for matches, factory in (
        (_is_literal, _hooks.literal),
        (_is_array, functools.partial(_hooks.array, converter)),
        (_is_mapping, functools.partial(_hooks.mapping, converter)),
        (_is_optional, functools.partial(_hooks.optional, converter)),
        (_is_word_or_array, functools.partial(_hooks.word_or_array, converter)),
        (_is_constrained, functools.partial(_hooks.constrained, converter)),
        (_is_scalar, _hooks.any_scalar),
        (_is_json, lambda _: lambda value, _: value),
        (_is_value, lambda _: check_value),
        (attrs.has, functools.partial(_fields, converter)),
        (functools.partial(_is, TraceRecord), functools.partial(_tagged, converter, "kind")),
        (functools.partial(_is, Param), functools.partial(_tagged, converter, "param_type")),
    ):
        converter.register_structure_hook_factory(matches, factory)
    converter.register_unstructure_hook_factory(
        lambda cls: _is_json(cls) or _is_value(cls), lambda _: lambda value: value
    )
    converter.register_unstructure_hook_factory(
        attrs.has, functools.partial(_written_fields, converter)
    )
    return converter


def hooks_by_tag(converter: cattrs.Converter, tag: str, union: Any) -> dict[str, Hook]:
    """Return how each class of a union is made, by the tag that tells them apart."""
    return {getattr(cls, tag): converter.get_structure_hook(cls) for cls in get_args(union)}


def _is(this: Any, cls: Any) -> bool:
    return bool(this == cls)


def _members(cls: Any) -> tuple[Any, ...]:
    return get_args(cls) if get_origin(cls) in {Union, UnionType} else ()


def _is_literal(cls: Any) -> bool:
    return get_origin(cls) is Literal


def _is_array(cls: Any) -> bool:
    return get_origin(cls) is tuple


def _is_mapping(cls: Any) -> bool:
    return get_origin(cls) is Mapping


def _is_optional(cls: Any) -> bool:
    members = _members(cls)
    return NoneType in members and len(members) == len(("something", "null"))


def _is_word_or_array(cls: Any) -> bool:
    members = _members(cls)
    return {get_origin(member) for member in members} == {Literal, tuple}


def _is_constrained(cls: Any) -> bool:
    return any(isinstance(mark, Constraint) for mark in _marks(cls))


def _is_scalar(cls: Any) -> bool:
    return set(_members(cls)) == _SCALARS


def _is_json(cls: Any) -> bool:
    return any(get_origin(member) is Sequence for member in _members(cls))


def _is_value(cls: Any) -> bool:
    """Whether it is `Value`, or a union of it with what stands for its absence."""
    return any(Encoded() in _marks(member) for member in (cls, *_members(cls)))


def _marks(cls: Any) -> tuple[Any, ...]:
    return get_args(cls)[1:] if get_origin(cls) is Annotated else ()


def _tagged(converter: cattrs.Converter, tag: str, union: Any) -> Hook:
    hooks = hooks_by_tag(converter, tag, union)

    def structure_one(value: Any, _: Any) -> Any:
        name = as_object(value).get(tag)
        hook = hooks.get(name) if isinstance(name, str) else None
        if hook is None:
            raise Mismatch(f"must have {tag!r}, one of {', '.join(hooks)}; got {shown(name)}")
        return hook(value, None)

    return structure_one


def _fields(converter: cattrs.Converter, cls: Any) -> Hook:
    overrides: dict[str, Any] = {
        name: override(rename=written) for name, written in _names(cls).items()
    }
    structure_fields = make_dict_structure_fn(cls, converter, **overrides)
    always_there = overrides.keys() & _ALWAYS_WRITTEN  # though they have defaults in Python

    def structure_object(value: Any, _: Any) -> Any:
        return structure_fields(value if type(value) is dict else as_object(value), cls)

    def structure_document(value: Any, _: Any) -> Any:
        for name in always_there - as_object(value).keys():
            raise inside(name, KeyError(name))
        return structure_fields(value, cls)

    return structure_document if always_there else structure_object


def _names(cls: Any) -> dict[str, str]:
    """Return the fields' names in the class, each with the one in the document."""
    return {field.name: field.name.removesuffix("_") for field in attrs.fields(cls)}


def _written_fields(converter: cattrs.Converter, cls: Any) -> Callable[[Any], dict[str, Any]]:
    overrides: dict[str, Any] = {
        name: override(rename=written, omit_if_default=written not in _ALWAYS_WRITTEN)
        for name, written in _names(cls).items()
    }
    unstructure_fields = make_dict_unstructure_fn(cls, converter, **overrides)
    tag = {name: getattr(cls, name) for name in _TAGS if hasattr(cls, name)}
    return lambda value: {**tag, **unstructure_fields(value)}
