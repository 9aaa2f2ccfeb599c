"""The cattrs converter: how each type that stands in a document's class is read and written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import homogenous_tuple_structure_factory, mapping_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from traincheck_trace_schema.invariants import Param
from traincheck_trace_schema.records import TraceRecord

Hook: TypeAlias = Callable[[Any, Any], Any]  # (value, its type) to what stands for it

_TAGS = ("kind", "param_type")
_ALWAYS_WRITTEN = ("schema", "version")
_SCALARS = frozenset({str, int, float, bool, NoneType})


class Mismatch(ValueError):  # noqa: N818  it becomes an error of the caller's choice
    """A value is not what its field may hold; the message completes "field 'x' ..."."""


def make_converter() -> cattrs.Converter:
    """Make the one converter."""
    converter = cattrs.Converter(
        omit_if_default=True, unstruct_collection_overrides={tuple: list, Mapping: dict}
    )
    converter.register_structure_hook(str, _scalar("a text", str))
    converter.register_structure_hook(int, _scalar("an integer", int))
    converter.register_structure_hook(bool, _scalar("true or false", bool))
    converter.register_structure_hook(float, _scalar("a number", float, int))
    for matches, factory in (
        (_is_literal, _literal),
        (_is_array, functools.partial(_array, converter)),
        (_is_mapping, functools.partial(_mapping, converter)),
        (_is_word_or_array, functools.partial(_word_or_array, converter)),
        (_is_scalar, _any_scalar),
        (_is_json, _anything),
        (attrs.has, functools.partial(_fields, converter)),
        (functools.partial(_is, TraceRecord), functools.partial(_tagged, converter, "kind")),
        (functools.partial(_is, Param), functools.partial(_tagged, converter, "param_type")),
    ):
        converter.register_structure_hook_factory(matches, factory)
    converter.register_unstructure_hook_factory(_is_json, lambda _: lambda value: value)
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


def _is_word_or_array(cls: Any) -> bool:
    members = _members(cls)
    return {get_origin(member) for member in members} == {Literal, tuple}


def _is_scalar(cls: Any) -> bool:
    return set(_members(cls)) == _SCALARS


def _is_json(cls: Any) -> bool:
    return any(get_origin(member) is Sequence for member in _members(cls))


def _scalar(expected: str, *types: type) -> Hook:
    def structure_scalar(value: Any, _: Any) -> Any:
        if type(value) not in types:
            raise Mismatch(f"must be {expected}, got {value!r}")
        return value

    return structure_scalar


def _any_scalar(_: Any) -> Hook:
    return _scalar("a text, a number, true, false or null", str, int, float, bool, NoneType)


def _anything(_: Any) -> Hook:
    return lambda value, _: value


def _literal(cls: Any) -> Hook:
    words = get_args(cls)

    def structure_literal(value: Any, _: Any) -> Any:
        if value not in words:
            raise Mismatch(f"must be one of {', '.join(map(repr, words))}; got {value!r}")
        return value

    return structure_literal


def _array(converter: cattrs.Converter, cls: Any) -> Hook:
    members = get_args(cls)  # of one type, in all of our documents
    length = None if members[-1] is ... else len(members)
    items = homogenous_tuple_structure_factory(cls, converter)

    def structure_array(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise Mismatch(f"must be a list, got {value!r}")
        if length not in {None, len(value)}:
            raise Mismatch(f"must have {length} items, got {value!r}")
        return items(value, cls)

    return structure_array


def _mapping(converter: cattrs.Converter, cls: Any) -> Hook:
    items = mapping_structure_factory(cls, converter)

    def structure_mapping(value: Any, _: Any) -> Any:
        return items(_as_object(value), cls)

    return structure_mapping


def _word_or_array(converter: cattrs.Converter, cls: Any) -> Hook:
    word, array = sorted(_members(cls), key=_is_array)
    structure_word, structure_array = map(converter.get_structure_hook, (word, array))

    def structure_either(value: Any, _: Any) -> Any:
        if isinstance(value, str):
            return structure_word(value, word)
        return structure_array(value, array)

    return structure_either


def _tagged(converter: cattrs.Converter, tag: str, union: Any) -> Hook:
    hooks = hooks_by_tag(converter, tag, union)

    def structure_one(value: Any, _: Any) -> Any:
        name = _as_object(value).get(tag)
        hook = hooks.get(name) if isinstance(name, str) else None
        if hook is None:
            raise Mismatch(f"must have {tag!r}, one of {', '.join(hooks)}; got {name!r}")
        return hook(value, None)

    return structure_one


def _fields(converter: cattrs.Converter, cls: Any) -> Hook:
    overrides: dict[str, Any] = {
        name: override(rename=written) for name, written in _names(cls).items()
    }
    structure_fields = make_dict_structure_fn(cls, converter, **overrides)

    def structure_object(value: Any, _: Any) -> Any:
        return structure_fields(_as_object(value), cls)

    return structure_object


def _as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mismatch(f"must be an object, got {value!r}")
    return value


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
