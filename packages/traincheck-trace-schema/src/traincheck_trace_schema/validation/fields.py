"""Fields that no class knows, and that look like ones that it does."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from traincheck_trace_schema.records import (
    Clock,
    Header,
    Holder,
    Recording,
    Sampling,
    TraceRecord,
)
from traincheck_trace_schema.values import ObjectValue, TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SIMILAR: Final = 0.65  # "attrs" is to "attributes"
_MOST_TOLD: Final = 100  # fields, each once


def _fields(cls: type) -> frozenset[str]:
    return frozenset(field.name.removesuffix("_") for field in attrs.fields(cls))


_OF_KIND: Final[Mapping[str, frozenset[str]]] = {
    cls.kind: _fields(cls) | {"kind"} for cls in get_args(TraceRecord)
}
_OF_HEADER: Final = {
    "recording": _fields(Recording),
    "sampling": _fields(Sampling),
    "clock": _fields(Clock),
}
_OF_VALUE: Final = {"tensor": _fields(TensorValue), "object": _fields(ObjectValue)}
_OF_HOLDER: Final = _fields(Holder)
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "var": ("attributes",),
    "call_begin": ("args", "ctx"),
}  # by kind: the fields that hold them, by name
_HEADER: Final = Header.kind


@attrs.define
class FieldHints:
    """Hints at fields that are probably misspelt, each once in a file."""

    _told: set[tuple[str, str]] = attrs.field(factory=set)

    def of(self, record: Mapping[str, Any]) -> list[str]:
        """Return what a valid record holds that nobody will read, though it seems meant so."""
        # Nearly all records know all of their fields; what is asked of each is asked in C.
        kind = record["kind"]
        hints: list[str] = []
        if not record.keys() <= _OF_KIND[kind]:
            hints += self._hints("", record, _OF_KIND[kind])
        if kind == _HEADER:
            for name, known in _OF_HEADER.items():
                hints += self._hints(f"{name}.", record.get(name, {}), known)
        for name in _VALUES.get(kind, ()):
            for value in (record.get(name) or {}).values():
                if type(value) is dict:
                    hints += self._of_value(value)
        for holder in record.get("held_by", ()) if kind == "var" else ():
            if not holder.keys() <= _OF_HOLDER:
                hints += self._hints("held_by.", holder, _OF_HOLDER)
        return hints

    def _of_value(self, value: Mapping[str, Any]) -> list[str]:
        ((key, payload),) = value.items()
        known = _OF_VALUE.get(key)
        if known is None or payload.keys() <= known:
            return []
        return list(self._hints(f"{key}.", payload, known))

    def _hints(self, place: str, told: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
        for name in told.keys() - known:
            if (place, name) in self._told or len(self._told) >= _MOST_TOLD:
                continue
            self._told.add((place, name))
            meant = difflib.get_close_matches(name, sorted(known - told.keys()), 1, _SIMILAR)
            if meant:
                yield f"field {place + name!r} is not known; is {place + meant[0]!r} meant?"
