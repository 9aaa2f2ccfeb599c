"""What a reader relies on in a line and in its raw record, checked for each.

That is less than the record's class asks for: the fields that give it its meaning are there, and of
the right type. Structuring a record costs several times what parsing it does.
"""

from __future__ import annotations

import re
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import ujson

from traincheck_trace_schema import strict_json
from traincheck_trace_schema.codec import loads, structure, structure_record
from traincheck_trace_schema.constraints import MAX_DEPTH
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.lines import MAX_LINE
from traincheck_trace_schema.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Raw: TypeAlias = dict[str, Any]

SHALLOW: Final = 2 * MAX_DEPTH  # bytes of a line that has no room for more levels
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN = 60  # characters of a line that is no record


def problem_of_text(line: bytes, record: object) -> str:
    """Say what is wrong with a line that ujson can parse; empty if nothing is."""
    if len(line) > SHALLOW:
        brackets = line.count(b"{") + line.count(b"[")  # at least as many as lists and objects
        if brackets > MAX_DEPTH and _is_deep(record, brackets):
            return f"is nested more than {MAX_DEPTH} levels deep"
    try:
        if not line.isascii():
            line.decode()
        if b"\\" in line and _SURROGATE.search(line):
            ujson.dumps(record, ensure_ascii=False).encode()
    except UnicodeError as error:
        return strict_json.worded(error)
    return ""


def problem_of_line(line: bytes | None) -> str:
    """Say why a line is no record; None is one that is too long."""
    if line is None:
        return f"is longer than {MAX_LINE} bytes"
    try:
        record = loads(line)
    except ValueError:
        return strict_json.why_no_json(line)
    if not isinstance(record, dict):
        return f"is no record: {_start(line)!r}"
    return problem_of_text(line, record) or _problem_of_fields(record) or "is no record"


def _start(line: bytes) -> str:
    return line[: 4 * _SHOWN].decode(errors="replace").strip()[:_SHOWN]


def _problem_of_fields(record: Raw) -> str:
    kind = record.get("kind")
    try:
        if isinstance(kind, str) and kind not in FORMS:
            structure(Record, record)
        else:
            structure_record(record)
    except TraceError as error:
        return str(error)
    return ""


def _is_deep(record: Any, most: int) -> bool:
    """Whether there are more than `MAX_DEPTH` levels of at most so many lists and objects."""
    inner: list[Any]
    level = [record]
    for depth in range(1, MAX_DEPTH + 1):
        most -= len(level)
        if depth + most <= MAX_DEPTH:  # even if each of those left were in the one before
            return False
        inner = []
        for each in level:
            inner += each.values() if type(each) is dict else each
        level = [each for each in inner if type(each) is dict or type(each) is list]
    return bool(level)


# These checks are made for each record. Written out they take 0.5 us, by tables of names and types
# 1.2 us, half of what parsing takes. A KeyError or TypeError is a no: so `join` asks for texts.

_OPTIONAL_INT = frozenset({int, NoneType})
_NOTHING: Raw = {}


def _is_any(_: Raw) -> bool:
    return True


def _is_placed(record: Raw) -> bool:
    return type(record["step"]) is int


def is_of_unknown_kind(record: Raw) -> bool:
    """Whether a record may be of a kind that a newer minor version has."""
    return type(record["kind"]) is str and type(record["step"]) is int


def _is_function(record: Raw) -> bool:
    "".join((record["name"], *record.get("bases", ()), *record.get("aliases", ())))
    return type(record["step"]) is int


def _is_source(record: Raw) -> bool:
    return (
        type(record["step"]) is int
        and type(record["id"]) is int
        and type(record["file"]) is str
        and type(record["line"]) is int
    )


def _is_stage(record: Raw) -> bool:
    return type(record["step"]) is int and type(record["stage"]) is str


def _is_call_begin(record: Raw) -> bool:
    get = record.get
    args = get("args")
    return (
        type(record["step"]) is int
        and type(record["id"]) is int
        and type(record["function"]) is str
        and type(get("parent")) in _OPTIONAL_INT
        and type(get("src")) in _OPTIONAL_INT
        and type(get("ctx", _NOTHING)) is dict
        and (args is None or (type(args) is dict and _are_values(args.values())))
        and ("self" not in record or _are_values((record["self"],)))
    )


def _is_call_end(record: Raw) -> bool:
    return (
        type(record["step"]) is int
        and type(record["id"]) is int
        and type(record["function"]) is str
    )


def _is_var(record: Raw) -> bool:
    names, attributes = record["names"], record.get("attributes", _NOTHING)
    "".join(names)
    for holder in record.get("held_by", ()):
        if type(holder["optimizer"]) is not str:
            return False
    return (
        type(record["step"]) is int
        and type(record["id"]) is int
        and type(record["event"]) is str
        and type(record["role"]) is str
        and type(record["type"]) is str
        and type(record["storage"]) is int
        and type(record.get("call")) in _OPTIONAL_INT
        and type(names) is list
        and bool(names)
        and type(attributes) is dict
        and _are_values(attributes.values())
    )


def _are_values(values: Iterable[Any]) -> bool:
    """Whether each tensor has a shape and a dtype; what lies deeper is left to who looks at it."""
    for value in values:
        if type(value) is dict and "tensor" in value:
            tensor = value["tensor"]
            if type(tensor["shape"]) is not list or type(tensor["dtype"]) is not str:
                return False
    return True


def _is_observe(record: Raw) -> bool:
    "".join(record["attributes"])
    "".join(record["roles"])
    return (
        type(record["step"]) is int
        and type(record["phase"]) is str
        and type(record["attributes"]) is list
        and type(record["roles"]) is list
        and type(record.get("call")) in _OPTIONAL_INT
    )


def _is_gap(record: Raw) -> bool:
    return type(record["step"]) is int and type(record["reason"]) is str


# By kind: whether the fields that give a record its meaning are there, and of the right type.
FORMS: Mapping[str, Callable[[Raw], bool]] = {
    "header": _is_any,
    "footer": _is_any,
    "function": _is_function,
    "source": _is_source,
    "stage": _is_stage,
    "step": _is_placed,
    "call_begin": _is_call_begin,
    "call_end": _is_call_end,
    "call_error": _is_call_end,
    "var": _is_var,
    "observe": _is_observe,
    "gap": _is_gap,
}
