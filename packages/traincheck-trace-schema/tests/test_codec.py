from __future__ import annotations

from typing import Any

import pytest

from traincheck_trace_schema.codec import (
    content_id,
    dumps,
    loads,
    structure,
    structure_record,
    unstructure,
)
from traincheck_trace_schema.errors import ConfigError, TraceError
from traincheck_trace_schema.invariants import APIParam, Clause, Conjunction, Invariant
from traincheck_trace_schema.plan import FunctionPlan
from traincheck_trace_schema.records import (
    Absent,
    CallBegin,
    CallEnd,
    Footer,
    Observe,
    VarRecord,
)
from traincheck_trace_schema.values import TensorValue

PLACE = {"thread": 1, "seq": 2, "step": 3}
CALL = {"kind": "call_begin", **PLACE, "id": 4, "function": "f"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    """No NaN token gets into a document."""
    with pytest.raises(OverflowError):
        dumps({"x": number})


def test_text_is_written_plainly() -> None:
    """Slashes are not escaped, and there is no space that nobody needs."""
    assert dumps({"file": "a/b.py", "n": [1, 2]}) == '{"file":"a/b.py","n":[1,2]}'


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("id", "7", "field 'id' must be an integer of at least 0 and below 2^62, got \"7\""),
        ("id", True, "field 'id' must be an integer of at least 0 and below 2^62, got true"),
        ("id", 1.0, "field 'id' must be an integer of at least 0 and below 2^62, got 1.0"),
        ("function", 7, "field 'function' must be a text that is not empty, got 7"),
        ("args", [], "field 'args' must be an object, got []"),
        ("step", None, "field 'step' must be an integer of at least -1 and below 2^62, got null"),
        ("thread", 1.5, "field 'thread' must be an integer, got 1.5"),
    ],
)
def test_scalars_are_not_converted(field: str, value: object, reason: str) -> None:
    """A value of another type is refused, and the message names the field."""
    with pytest.raises(TraceError) as caught:
        structure_record({**CALL, field: value})

    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"held_by": [{"optimizer": "o"}]}, "field 'held_by[0].group' is missing"),
        ({"names": "weight"}, "field 'names' must be a list, got \"weight\""),
        ({"between": [1]}, "field 'between' must have 2 items, got [1]"),
        (
            {"between": [1, "2"]},
            "field 'between[1]' must be an integer of at least 0 and below 2^62, got \"2\"",
        ),
        ({"event": "came"}, "field 'event' must be one of 'baseline', "),
        ({"event": []}, "field 'event' must be one of 'baseline', "),
    ],
)
def test_a_message_leads_to_the_place(changed: dict[str, Any], reason: str) -> None:
    """Nested fields are named by their path."""
    record = {
        "kind": "var",
        **PLACE,
        "event": "gone",
        "id": 1,
        "names": ["w"],
        "role": "parameter",
        "type": "t",
        "storage": 0,
    }
    assert isinstance(structure_record(record), VarRecord)

    with pytest.raises(TraceError) as caught:
        structure_record({**record, **changed})

    assert str(caught.value).startswith(reason)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": -1}, "field 'id' must be an integer of at least 0 and below 2^62, got -1"),
        ({"step": -2}, "field 'step' must be an integer of at least -1 and below 2^62, got -2"),
        ({"function": ""}, "field 'function' must be a text that is not empty, got \"\""),
        ({"args": {"x": {"tensor": {}}}}, "field \"args['x'].tensor."),
        ({"args": {"x": [{"float": "big"}]}}, "field \"args['x'].float\" must be one of 'nan', "),
        (
            {"self": {"tensor": {"shape": [], "dtype": "int8", "device": "cpu", "digest": "x"}}},
            "field 'self.tensor.digest' must be a text like 'xxh3:0123456789abcdef', got \"x\"",
        ),
        ({"ctx": {"lr": {"a": 1, "b": 2}}}, "field \"ctx['lr']\" must be a text, a number, true, "),
    ],
)
def test_constraints_are_checked(changed: dict[str, Any], reason: str) -> None:
    """What the schema asks for beyond a type is asked for here, by a message that says what."""
    with pytest.raises(TraceError) as caught:
        structure_record({**CALL, **changed})

    assert str(caught.value).startswith(reason)


def test_a_message_shows_the_start_of_a_long_value() -> None:
    """A document may hold megabytes where a number should stand."""
    with pytest.raises(TraceError) as caught:
        structure_record({**CALL, "id": ["x" * 1000] * 1000})

    assert len(str(caught.value)) < 1000


def test_deep_nesting_is_refused() -> None:
    """Values may be nested as deep as Python follows them; what is deeper has a message too."""
    value: Any = 1
    for _ in range(400):
        value = {"object": {"type": "t", "attributes": {"inner": value}}}

    with pytest.raises(TraceError, match="nested too deep"):
        structure_record({**CALL, "args": {"x": value}})


def test_no_result_is_not_the_result_none() -> None:
    """A call whose result was not requested differs from one that returned `None`."""
    end = {"kind": "call_end", **PLACE, "id": 4, "function": "f"}

    silent, none = structure_record(end), structure_record({**end, "result": None})

    assert isinstance(silent, CallEnd)
    assert silent.result is Absent.NOT_REQUESTED
    assert isinstance(none, CallEnd)
    assert none.result is None
    assert (unstructure(silent), unstructure(none)) == (end, {**end, "result": None})


def test_an_integer_will_do_for_a_number() -> None:
    """`12` is a valid number of seconds."""
    footer = structure_record({"kind": "footer", "records": {}, "seconds": 12})

    assert footer == Footer(records={}, seconds=12)


def test_unknown_fields_are_ignored() -> None:
    """What a newer minor version adds does not disturb."""
    assert structure_record({**CALL, "mood": "fine"}) == structure_record(CALL)


@pytest.mark.parametrize("record", [{}, {"kind": "joke"}, {"kind": ["step"]}, {"kind": None}])
def test_a_record_of_unknown_kind_is_refused(record: dict[str, Any]) -> None:
    """The message lists the kinds that there are."""
    with pytest.raises(TraceError, match=r"'kind' (must be|is missing; it is) one of header, "):
        structure_record(record)


@pytest.mark.parametrize("line", [None, 7, [], "x"])
def test_what_is_no_object_is_no_record(line: object) -> None:
    """Whatever a line says, it is refused by a message."""
    with pytest.raises(TraceError, match="is no record: must be an object, got "):
        structure_record(line)


def test_a_deep_mistake_is_found_at_once() -> None:
    """What is wrong at each level of nesting is looked at once, and its place is told."""
    value: Any = {"bad": 1}
    for _ in range(60):
        value = {"tuple": [0, value]}

    with pytest.raises(TraceError, match=r"self\.tuple\[1\]\.tuple\[1\]"):
        structure_record({**CALL, "self": value})


def test_counts_have_a_limit() -> None:
    """Windows need room for what comes after all steps."""
    assert structure_record({**CALL, "step": 2**62 - 1}).step == 2**62 - 1
    with pytest.raises(TraceError, match="'step' must be an integer of at least -1 and below"):
        structure_record({**CALL, "step": 2**62})


def test_a_dtype_has_no_prefix() -> None:
    """It is named as torch names it, without the name of torch."""
    with pytest.raises(TraceError, match=r"'self\.dtype' must be a text like 'float32', got"):
        structure_record({**CALL, "self": {"dtype": "torch.float32"}})


def test_values_pass_through_untouched() -> None:
    """A value is the very object that was read, with what a newer minor version added to it."""
    value = {"tensor": {"shape": [1], "dtype": "int8", "device": "cpu", "future": {}}}

    record = structure_record({**CALL, "args": {"x": value}})

    assert isinstance(record, CallBegin)
    assert record.args is not None
    assert record.args["x"] is value
    assert unstructure(record)["args"]["x"] is value


def test_defaults_are_left_out_and_tags_are_not() -> None:
    """A record says its kind and what differs from the default."""
    record = CallBegin(thread=1, seq=2, step=3, id=4, function="f", self_={"cut": "t"})

    assert unstructure(record) == {**CALL, "self": {"cut": "t"}}


def test_a_document_always_names_its_version() -> None:
    """Schema and version have defaults and are written all the same."""
    invariant = Invariant(
        id="1",
        text_description="t",
        relation="R",
        params=(APIParam(api_full_name="f"),),
        precondition={},
    )

    written = unstructure(invariant)

    assert (written["schema"], written["version"]) == ("traincheck.invariants", "1.0")
    assert written["params"] == [{"param_type": "APIParam", "api_full_name": "f"}]


@pytest.mark.parametrize(
    ("cls", "raw", "made"),
    [
        (Conjunction, {"clauses": "Unconditional"}, Conjunction(clauses="Unconditional")),
        (
            Conjunction,
            {"clauses": [{"type": "exist", "prop_name": "p"}]},
            Conjunction(clauses=(Clause(type="exist", prop_name="p"),)),
        ),
        (FunctionPlan, {"name": "f", "arguments": "all"}, FunctionPlan(name="f", arguments="all")),
        (FunctionPlan, {"name": "f", "arguments": ["x"]}, FunctionPlan(name="f", arguments=("x",))),
    ],
)
def test_a_word_may_stand_for_a_list(cls: type, raw: dict[str, Any], made: object) -> None:
    """Both forms are read and written."""
    assert structure(cls, raw) == made
    assert unstructure(made) == raw


def test_another_word_is_refused() -> None:
    """Only the one word stands for a list; its letters are no list."""
    with pytest.raises(ConfigError, match=r"'arguments' must be 'all', got \"some\""):
        structure(FunctionPlan, {"name": "f", "arguments": "some"}, error=ConfigError)


def test_what_is_no_object_is_refused() -> None:
    """A whole document of the wrong type gets a message too."""
    with pytest.raises(TraceError, match="must be an object, got 3"):
        structure(Observe, 3)


def test_tensor_values_can_be_read() -> None:
    """The payload of a `tensor` value structures into its class."""
    raw = {"shape": [2], "dtype": "float32", "device": "cpu", "data": [1.5, {"float": "nan"}]}

    value = structure(TensorValue, raw)

    assert value == TensorValue(
        shape=(2,), dtype="float32", device="cpu", data=(1.5, {"float": "nan"})
    )
    assert unstructure(value) == raw


def test_an_id_depends_on_content_only() -> None:
    """The order of keys changes nothing; a value, or its type, does."""
    first = content_id({"a": 1, "b": [1, 2]})

    assert first == content_id({"b": [1, 2], "a": 1})
    assert len({first, content_id({"a": 1, "b": [2, 1]}), content_id({"a": "1", "b": [1, 2]})}) == 3
    assert len(first) == 16


def test_the_id_of_a_content_never_changes() -> None:
    """Ids stand in users' files, so the algorithm is fixed."""
    assert content_id({"relation": "R", "n": 1}) == "4f1034fba01eb5a7"


def test_integers_beyond_64_bit_survive() -> None:
    """The text format has no limit of its own."""
    assert loads(dumps([2**70])) == [2**70]
