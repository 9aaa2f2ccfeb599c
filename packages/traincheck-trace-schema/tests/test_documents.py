"""The classes and the schemas say the same, for every document."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

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
    unstructure,
)
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.plan import Plan
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.results import Summary, Verdict
from traincheck_trace_schema.validation import load_schema, validate

GOLDEN = Path(__file__).parent / "golden" / "1.0"

DOCUMENTS: Mapping[type, str] = {
    **dict.fromkeys(get_args(TraceRecord), "trace"),
    Invariant: "invariants",
    Plan: "plan",
    Summary: "results",
    Verdict: "results",
}
GOLDEN_DOCUMENTS: Mapping[str, type | None] = {
    "invariants.json": Invariant,
    "plan.json": Plan,
    "violations_summary.json": Summary,
    "failed.log": Verdict,
    "not_triggered.log": Verdict,
}

COUNTS = st.integers(0, 2**53)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(min_size=1, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | NUMBERS | TEXTS
DIGESTS = st.from_regex(r"[a-z]{2}[0-9]:[0-9a-f]{16}", fullmatch=True)
TENSORS = st.fixed_dictionaries(
    {"shape": st.lists(COUNTS, max_size=3), "dtype": TEXTS, "device": TEXTS},
    optional={"digest": DIGESTS, "zero": st.booleans(), "requires_grad": st.booleans()},
)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    items = st.lists(inner, max_size=3)
    attributes = st.dictionaries(TEXTS, inner, max_size=2)
    return st.one_of(
        items,
        st.fixed_dictionaries({"tuple": items}),
        st.fixed_dictionaries({"set": items}),
        st.fixed_dictionaries({"dict": st.lists(st.tuples(inner, inner).map(list), max_size=2)}),
        st.builds(
            lambda name, held: {"object": {"type": name, "attributes": held}}, TEXTS, attributes
        ),
    )


VALUES = st.recursive(
    SCALARS
    | st.fixed_dictionaries({"tensor": TENSORS})
    | st.fixed_dictionaries({"float": st.sampled_from(["nan", "inf", "-inf"])})
    | st.fixed_dictionaries({"int": st.integers(2**63).map(str)})
    | st.fixed_dictionaries({"text": st.fixed_dictionaries({"start": TEXTS, "length": COUNTS})})
    | st.fixed_dictionaries({"bytes": st.fixed_dictionaries({"length": COUNTS})})
    | TEXTS.flatmap(
        lambda text: st.sampled_from([{"cut": text}, {"dtype": text}, {"device": text}])
    ),
    _compound,
    max_leaves=4,
)
BY_NAME = {
    "step": st.integers(-1, 2**53),
    "world_size": st.integers(1, 4096),
    "interval": st.integers(1, 1000),
    "occurrences": st.integers(1, 1000),
}


def _fields(cls: type) -> dict[str, st.SearchStrategy[Any]]:
    """Return a strategy for each field of a document's class."""
    written = {field.name: field for field in attrs.fields(cls)}
    return {
        name: _field(cls, name, hint, written[name].default)
        for name, hint in get_type_hints(cls).items()
        if name in written
    }


def _field(cls: type, name: str, hint: Any, default: Any) -> st.SearchStrategy[Any]:
    if name == "schema":
        return st.just(f"traincheck.{DOCUMENTS[cls]}")
    if name == "version":
        return st.just("1.0")
    strategy = BY_NAME[name] if name in BY_NAME else _of_type(hint)
    is_plain_default = default is not attrs.NOTHING and not isinstance(default, attrs.Factory)
    return strategy | st.just(default) if is_plain_default else strategy


@functools.cache
def instances(cls: type) -> st.SearchStrategy[Any]:
    """Return a strategy for instances of a document's class."""
    return st.fixed_dictionaries(_fields(cls)).map(lambda fields: cls(**fields))


def _of_type(hint: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911  one case a type
    origin, members = get_origin(hint), get_args(hint)
    if hint in {int, str, bool, float, NoneType}:
        return {int: COUNTS, str: TEXTS, bool: st.booleans(), float: NUMBERS}.get(hint, st.none())
    if attrs.has(hint):
        return instances(hint)
    if origin is Literal:
        return st.sampled_from(members)
    if origin is tuple and members[-1] is not ...:
        return st.tuples(*map(_of_type, members))
    if origin is tuple:
        return st.lists(_of_type(members[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(TEXTS, _of_type(members[1]), max_size=3)
    assert origin in {Union, UnionType}, hint
    if any(get_origin(member) is Sequence for member in members):
        return VALUES
    return st.one_of(*map(_of_type, members))


def _second_opinion(document: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(load_schema(document))


def _is_valid(document: str, instance: object) -> bool:
    try:
        validate(document, instance)
    except TraincheckError:
        return False
    return True


@pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_valid_and_read_back(cls: type, data: st.DataObject) -> None:
    """Any instance becomes JSON that its schema accepts and that gives the same instance."""
    instance = data.draw(instances(cls))

    raw = loads(dumps(unstructure(instance)))

    validate(DOCUMENTS[cls], raw)
    assert structure(cls, raw) == instance
    if DOCUMENTS[cls] == "trace":
        assert structure_record(raw) == instance


@pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_two_validators_and_the_reader_agree_on_damaged_documents(
    cls: type, data: st.DataObject
) -> None:
    """Both JSON Schema libraries judge alike, and what they accept can be read."""
    raw = loads(dumps(unstructure(data.draw(instances(cls)))))
    field = data.draw(st.sampled_from(sorted(raw)))
    if data.draw(st.booleans()):
        del raw[field]
    else:
        raw[field] = data.draw(st.sampled_from([None, "x", -2, 7, True, [], ["x"], [3], {"x": 1}]))

    is_valid = _is_valid(DOCUMENTS[cls], raw)

    assert is_valid == _second_opinion(DOCUMENTS[cls]).is_valid(raw)
    if is_valid:
        structure(cls, raw)


@pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)
def test_each_field_that_must_be_there_is_required_by_the_schema(cls: type) -> None:
    """Leaving out a field without a default is noticed by the schema and by the reader."""
    document = DOCUMENTS[cls]
    names = {field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING}
    raw = unstructure(_simplest(cls))
    assert _is_valid(document, raw)

    for name in names:
        less = {key: value for key, value in raw.items() if key != name}
        assert not _is_valid(document, less), name
        with pytest.raises(TraincheckError, match=f"field '{name}' is missing"):
            structure(cls, less)


def _simplest(cls: type) -> Any:
    found: list[Any] = []

    @given(instances(cls))
    @settings(max_examples=1, database=None, derandomize=True, deadline=None)
    def draw(instance: Any) -> None:
        found.append(instance)

    draw()
    return found[0]


def _golden(name: str) -> list[dict[str, Any]]:
    text = (GOLDEN / name).read_text("utf-8")
    return [loads(text)] if text.startswith("{\n") else [loads(each) for each in text.splitlines()]


def test_golden_records_stay_readable() -> None:
    """A record of version 1.0 validates, is read, and is written as it was."""
    for raw in _golden("trace_r0_p4242.json"):
        validate("trace", raw)
        assert _second_opinion("trace").is_valid(raw)
        assert unstructure(structure_record(raw)) == raw


def test_there_is_a_golden_record_of_each_kind() -> None:
    """The golden trace leaves no kind out, nor any field of one."""
    raws = _golden("trace_r0_p4242.json")

    for cls in get_args(TraceRecord):
        written = {key for raw in raws if raw["kind"] == cls.kind for key in raw}
        fields = {field.name.removesuffix("_") for field in attrs.fields(cls)}
        unwritten = fields - written - {"eval_pass", "eval_step", "micro_step"}
        assert not unwritten, cls


@pytest.mark.parametrize("name", GOLDEN_DOCUMENTS)
def test_golden_documents_stay_readable(name: str) -> None:
    """A document of version 1.0 validates, is read, and is written as it was."""
    cls = GOLDEN_DOCUMENTS[name]
    for raw in _golden(name):
        validate(DOCUMENTS[cls], raw)
        assert _second_opinion(DOCUMENTS[cls]).is_valid(raw)
        assert unstructure(structure(cls, raw)) == raw
