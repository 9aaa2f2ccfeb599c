"""What a reader relies on in a raw record, checked for each: cheaper than structuring it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_ID = {"id": int}
_CALL = {**_ID, "function": str}
_FORMS: Mapping[str, Mapping[str, type]] = {
    "function": {"name": str},
    "source": {**_ID, "file": str, "line": int},
    "stage": {"stage": str},
    "call_begin": {**_CALL, "thread": int, "seq": int},
    "call_end": _CALL,
    "call_error": _CALL,
    "var": {**_ID, "event": str, "names": list, "role": str, "type": str, "storage": int},
    "observe": {"phase": str, "attributes": list},
    "gap": {"reason": str},
}
_OPTIONAL: Mapping[str, Mapping[str, type]] = {
    "function": {"bases": list, "aliases": list},
    "call_begin": {"parent": int, "args": dict, "ctx": dict, "src": int},
    "var": {"attributes": dict, "held_by": list, "call": int},
    "observe": {"call": int},
}
_NOTHING: Mapping[str, type] = {}


def is_well_formed(record: Mapping[str, Any]) -> bool:
    """Whether the fields that give a record its meaning are there, and of the right type.

    Kinds that are not known here pass: a newer minor version may have them.
    """
    kind = record["kind"]
    for name, expected in _FORMS.get(kind, _NOTHING).items():
        if type(record.get(name)) is not expected:
            return False
    for name, expected in _OPTIONAL.get(kind, _NOTHING).items():
        value = record.get(name)
        if value is not None and type(value) is not expected:
            return False
    return kind != "var" or bool(record["names"])
