from __future__ import annotations

import sys
from typing import Any

import jsonschema
import pytest

from traincheck_trace_schema import validation
from traincheck_trace_schema.errors import (
    ConfigError,
    InvariantError,
    TraceError,
    TraincheckError,
)
from traincheck_trace_schema.validation import schema

CALL = {"kind": "call_begin", "thread": 1, "seq": 2, "step": 3, "id": 4, "function": "f"}


@pytest.mark.parametrize("document", validation.DOCUMENTS)
def test_each_schema_is_a_valid_schema(document: str) -> None:
    """The schemas follow JSON Schema 2020-12."""
    for version in validation.versions_of(document):
        jsonschema.Draft202012Validator.check_schema(validation.load_schema(document, version))


@pytest.mark.parametrize("document", validation.DOCUMENTS)
def test_the_version_that_is_written_has_a_schema(document: str) -> None:
    """What the classes are of is among the versions that there are."""
    assert validation.DOCUMENTS[document].version in validation.versions_of(document)


def test_there_are_six_documents() -> None:
    """Another name, or version, is refused, with those that there are."""
    known = "must be one of trace, invariants, plan, results, suppressions, progress; got 'poem'"
    with pytest.raises(ConfigError, match=known):
        validation.load_schema("poem")
    with pytest.raises(ConfigError, match=r"version of plan must be one of 1\.0; got 7\.1"):
        validation.load_schema("plan", "7.1")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": "4"}, "field 'id' must be an integer of at least 0 and below 2^62, got \"4\""),
        ({"step": -2}, "field 'step' must be an integer of at least -1 and below 2^62, got -2"),
        ({"sampled": 1, "kind": "step"}, "field 'sampled' must be true or false, got 1"),
    ],
)
def test_the_message_says_where(changed: dict[str, Any], reason: str) -> None:
    """The words are those of reading a record: the field, what it must be, what it is."""
    with pytest.raises(TraceError) as caught:
        validation.validate("trace", {**CALL, **changed})

    assert str(caught.value) == reason


def test_values_need_exactly_one_key() -> None:
    """An object of the program that slipped into a trace unencoded is noticed."""
    for value in ({}, {"dtype": "float32", "device": "cpu"}):
        with pytest.raises(TraceError, match="field 'self' must be"):
            validation.validate("trace", {**CALL, "self": value})


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("trace", TraceError),
        ("invariants", InvariantError),
        ("plan", ConfigError),
        ("suppressions", ConfigError),
        ("progress", ConfigError),
    ],
)
def test_the_error_fits_the_document(document: str, error: type[TraincheckError]) -> None:
    """Each document has the error that reading it has."""
    with pytest.raises(error):
        validation.validate(document, {})


def test_unknown_fields_are_allowed() -> None:
    """A document of a newer minor version validates."""
    validation.validate("trace", {**CALL, "mood": "fine"})


def test_a_validator_is_compiled_once() -> None:
    """Validating many records does not compile the schema again."""
    validation.validate("trace", CALL)
    before = schema._validator.cache_info().misses

    validation.validate("trace", CALL)

    assert schema._validator.cache_info().misses == before


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """jsonschema-rs is an extra; who needs it is told how to get it."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema._validator.cache_clear()

    with pytest.raises(ConfigError, match=r"pip install 'traincheck-trace-schema\[validate\]'"):
        validation.validate("trace", CALL)
