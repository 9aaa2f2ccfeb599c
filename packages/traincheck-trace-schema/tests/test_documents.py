"""The classes and the schemas say the same, for every document."""

from __future__ import annotations

import copy
import enum
import functools
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import (
    dumps,
    loads,
    structure,
    structure_record,
    structure_value,
    unstructure,
)
from traincheck_trace_schema.constraints import Between, FromZeroToOne, Matches, NotEmpty
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.plan import Plan
from traincheck_trace_schema.progress import Progress
from traincheck_trace_schema.reading.form import FORMS
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.results import Summary, Verdict
from traincheck_trace_schema.suppressions import Suppression
from traincheck_trace_schema.validation import load_schema, validate
from traincheck_trace_schema.validation.schema import validity_of
from traincheck_trace_schema.values import PAYLOADS, Encoded

DOCUMENTS: Mapping[type, str] = {
    **dict.fromkeys(get_args(TraceRecord), "trace"),
    Invariant: "invariants",
    Plan: "plan",
    Summary: "results",
    Verdict: "results",
    Suppression: "suppressions",
    Progress: "progress",
}
LARGEST = 2**53
ODD: tuple[Any, ...] = (
    None, True, -1, -2, 0, 7, 0.5, "", "x", "1.0", [], [1], ["x"], {}, {"x": 1}, {"float": "nan"},
    {"cut": "x", "dtype": "y"}, [[1, 2]],
)  # fmt: skip

slow = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
each_class = pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | NUMBERS | TEXTS


@functools.cache
def values() -> st.SearchStrategy[Any]:
    """Return a strategy for values, in all encodings."""
    return st.recursive(SCALARS, _compound, max_leaves=3)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    payloads = {key: _of_type(hint, value=inner) for key, hint in PAYLOADS.items()}
    encoded = (
        payload.map(lambda made, key=key: {key: unstructure(made)})
        for key, payload in payloads.items()
    )
    return st.one_of(st.lists(inner, max_size=2), *encoded)


def instances(cls: type, value: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """Return a strategy for instances of a document's class."""
    hints = get_type_hints(cls, include_extras=True)
    fields = {field.name: _field(hints[field.name], field, value) for field in attrs.fields(cls)}
    return st.builds(cls, **fields)


def _field(
    hint: Any, field: attrs.Attribute[Any], value: st.SearchStrategy[Any] | None
) -> st.SearchStrategy[Any]:
    strategy = _of_type(hint, value)
    if field.default is attrs.NOTHING:
        return strategy
    is_made = isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    return strategy | (st.builds(field.default.factory) if is_made else st.just(field.default))


def _of_type(  # noqa: PLR0911  one case a type
    hint: Any, value: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[Any]:
    origin, members = get_origin(hint), get_args(hint)
    if isinstance(hint, enum.EnumMeta):
        return st.sampled_from(hint)
    if hint in {int, str, bool, float, NoneType}:
        integers = st.integers(-LARGEST, LARGEST)
        return {int: integers, str: TEXTS, bool: st.booleans(), float: NUMBERS}.get(hint, st.none())
    if attrs.has(hint):
        return instances(hint, value)
    if origin is Annotated:
        return _annotated(members, value)
    if origin is Literal:
        return st.sampled_from(members)
    if origin is tuple and members[-1] is not ...:
        return st.tuples(*(_of_type(member, value) for member in members))
    if origin is tuple:
        return st.lists(_of_type(members[0], value), max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(TEXTS, _of_type(members[1], value), max_size=2)
    assert origin in {Union, UnionType}, hint
    if any(get_origin(member) is Sequence for member in members):
        return values()  # plain JSON
    return st.one_of(*(_of_type(member, value) for member in members))


def _annotated(
    members: tuple[Any, ...], value: st.SearchStrategy[Any] | None
) -> st.SearchStrategy[Any]:
    base, mark = members
    if isinstance(mark, Encoded):
        return value if value is not None else values()
    if isinstance(mark, Between):
        return st.integers(mark.minimum, min(mark.maximum, LARGEST))
    if isinstance(mark, FromZeroToOne):
        return st.floats(0, 1)
    if isinstance(mark, Matches):
        return st.from_regex(f"(?a:{mark.pattern})", fullmatch=True)
    assert mark == NotEmpty()
    if base is str:
        return st.text(min_size=1, max_size=8)
    items = _of_type(get_args(base)[0], value)
    return st.lists(items, min_size=1, max_size=2).map(tuple)


def raw_of(instance: Any) -> dict[str, Any]:
    """Return what a file says of an instance."""
    raw: dict[str, Any] = loads(dumps(unstructure(instance)))
    return raw


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each (container, key) of a document."""
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


def damaged(data: st.DataObject, raw: dict[str, Any]) -> dict[str, Any]:
    """Change one thing in a document: leave something out, put something else, add something."""
    changed = copy.deepcopy(raw)
    node, key = data.draw(st.sampled_from(list(_places(changed))))
    match data.draw(st.sampled_from(["leave out", "replace", "add"])):
        case "leave out":
            del node[key]
        case "replace":
            node[key] = data.draw(st.sampled_from(ODD))
        case "add" if isinstance(node, dict):
            node["mood"] = data.draw(st.sampled_from(ODD))
    return changed


def is_valid(document: str, raw: object) -> bool:
    """Whether the schema accepts a document."""
    return validity_of(document)(raw)


def is_read(cls: type, raw: dict[str, Any]) -> bool:
    """Whether the class accepts a document."""
    try:
        structure_record(raw) if DOCUMENTS[cls] == "trace" else structure(cls, raw)
    except TraincheckError:
        return False
    return True


@functools.cache
def second_opinion(document: str) -> jsonschema.Draft202012Validator:
    """Return another implementation of JSON Schema."""
    return jsonschema.Draft202012Validator(load_schema(document))


@each_class
@given(data=st.data())
@slow
def test_what_is_written_is_valid_and_read_back(cls: type, data: st.DataObject) -> None:
    """Any instance becomes JSON that its schema accepts and that gives the same instance."""
    instance = data.draw(instances(cls))

    raw = raw_of(instance)

    validate(DOCUMENTS[cls], raw)
    if DOCUMENTS[cls] == "trace":
        assert structure_record(raw) == instance
        assert FORMS[raw["kind"]](raw)
    else:
        assert structure(cls, raw) == instance


@each_class
@given(data=st.data())
@settings(slow, max_examples=30)
def test_the_class_refuses_what_the_schema_refuses(cls: type, data: st.DataObject) -> None:
    """One thing that is changed in a document is noticed by both, or by none.

    What is valid has the form that readers of raw records rely on.
    """
    raw = damaged(data, raw_of(data.draw(instances(cls))))

    judged = is_valid(DOCUMENTS[cls], raw)

    assert is_read(cls, raw) == judged
    if judged and DOCUMENTS[cls] == "trace":
        assert FORMS[raw["kind"]](raw)


@each_class
@given(data=st.data())
@settings(slow, max_examples=5)
def test_two_validators_agree(cls: type, data: st.DataObject) -> None:
    """What the schemas say does not depend on who reads them."""
    raw = raw_of(data.draw(instances(cls)))
    if data.draw(st.booleans()):
        raw = damaged(data, raw)

    assert is_valid(DOCUMENTS[cls], raw) == second_opinion(DOCUMENTS[cls]).is_valid(raw)


@given(value=values())
@slow
def test_each_value_can_be_read_as_an_object(value: Any) -> None:
    """Every encoding has its class, or its type of Python."""
    structure_value(value)


@each_class
def test_defaults_are_those_of_the_schema(cls: type) -> None:
    """A field may be left out where it has a default, which the schema names."""
    document, name = DOCUMENTS[cls], getattr(cls, "kind", cls.__name__.lower())
    schema = load_schema(document)
    properties = schema.get("$defs", {}).get(name, schema)["properties"]
    for field in attrs.fields(cls):
        written = field.name.removesuffix("_")
        if "default" in properties.get(written, {}):
            assert field.default == properties[written]["default"], written


def test_the_documents_agree_on_values() -> None:
    """A value in an invariant is what it is in a trace."""
    in_traces, in_invariants = (load_schema(each)["$defs"] for each in ("trace", "invariants"))

    for name in ("value", "values", "values_by_name", "tensor", "object"):
        assert in_invariants[name] == in_traces[name], name


def test_integers_are_written_without_a_fraction() -> None:
    """JSON Schema takes 1.0 for an integer; readers do not, and the documentation says so."""
    raw = {"kind": "stage", "thread": 1, "seq": 1.0, "step": 0, "stage": "init"}

    assert is_valid("trace", raw)
    with pytest.raises(
        TraincheckError, match=r"'seq' must be an integer of at least 0 and below 2\^62, got 1\.0"
    ):
        structure_record(raw)
