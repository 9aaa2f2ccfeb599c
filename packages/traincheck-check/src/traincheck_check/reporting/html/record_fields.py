"""What a record of a trace tells, field by field, in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.html.wording import clipped
from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_trace_schema.values import Json

_MAX_VALUE = 240  # characters
_MAX_DEPTH = 4  # of fields in fields; below it a value is told as JSON
# Where the record stands, which differs between any two, and numbers that refer to other records.
_BOOKKEEPING = frozenset(
    (
        *("kind", "thread", "seq", "step", "eval_pass", "eval_step", "micro_step", "t_ns"),
        *("id", "parent", "call", "src", "stack", "between", "storage"),
    )
)
_TITLES: Mapping[str, str] = {
    "call_begin": "Call begins",
    "call_end": "Call returns",
    "call_error": "Call raises",
    "observe": "Variables looked at",
    "var": "Variable",
    "stage": "Stage begins",
    "step": "Step begins",
    "gap": "Records are missing",
    "footer": "Process ends",
}
_PLAIN_KEYS = frozenset(("float", "int", "dtype", "device"))


@attrs.frozen
class Field:
    """A field of a record. `content` is what two runs may have in common of it.

    Digests differ between two runs wherever their random numbers do.
    """

    text: str
    content: str
    digest: str | None = None  # of a tensor


def title_of(record: Mapping[str, Json]) -> str:
    """Say what kind of a record it is."""
    kind = str(record.get("kind", "record"))
    event = record.get("event")
    return _TITLES.get(kind, kind) + (f" {event}" if isinstance(event, str) else "")


def fields_of(record: Mapping[str, Json]) -> dict[str, Field]:
    """Return what a record tells, by the path to it; empty fields are left out."""
    told: dict[str, Json] = {
        name: value
        for name, value in record.items()
        if name not in _BOOKKEEPING and (name, value) != ("event", record.get("event"))
    }
    return dict(_fields(told, "", 1))


def _fields(of: Mapping[str, Json], path: str, depth: int) -> Iterator[tuple[str, Field]]:
    for name, value in of.items():
        here = f"{path}{name}"
        if isinstance(value, Mapping) and len(value) == 1 and (field := _typed(value)):
            yield here, field
        elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
            yield from _fields(value, f"{here}.", depth + 1)
        elif value not in ({}, [], ()) and (depth > 1 or value is not None):
            yield here, _plain(_text(value))


def _typed(value: Mapping[str, Any]) -> Field | None:
    """Tell a value that is written as an object with one key, if it is one."""
    ((key, payload),) = value.items()
    if key == "tensor" and isinstance(payload, Mapping):
        return _tensor(payload)
    if key == "object" and isinstance(payload, Mapping):
        return _plain(_object(payload))
    if key in _PLAIN_KEYS and isinstance(payload, str):
        return _plain(payload)
    if key == "tuple" and isinstance(payload, Sequence):
        return _plain(f"({', '.join(map(_text, payload))})")
    return None


def _tensor(payload: Mapping[str, Any]) -> Field:
    shape = payload.get("shape")
    parts = [
        f"{payload.get('dtype', 'tensor')} {_text(shape)}",
        *(["all zero"] if payload.get("zero") else []),
        *(["not finite"] if payload.get("finite") is False else []),
        *(f"{name} {_text(value)}" for name, value in (payload.get("facts") or {}).items()),
    ]
    content = ", ".join(parts)
    digest = payload.get("digest")
    text = content if digest is None else f"{content}, digest {digest}"
    return Field(clipped(text, _MAX_VALUE), content, digest)


def _object(payload: Mapping[str, Any]) -> str:
    type_, name = str(payload.get("type", "object")), payload.get("name")
    attributes = payload.get("attributes")
    named = type_ if name is None else f"{name} ({type_})"
    return f"{named} {_text(attributes)}" if attributes else named


def _text(value: Json) -> str:
    if isinstance(value, Mapping) and len(value) == 1 and (field := _typed(value)):
        return field.text
    # A record that did not come from a file has tuples.
    if isinstance(value, list | tuple) and value and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else dumps(value)


def _plain(text: str) -> Field:
    short = clipped(text, _MAX_VALUE)
    return Field(short, text)
