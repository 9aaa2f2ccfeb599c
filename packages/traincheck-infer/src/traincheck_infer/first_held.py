"""Where a claim held first, with the records that show it, trimmed to what a person needs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.api import Context
from traincheck_relations.occasion import place_of
from traincheck_trace_schema.occasion import Evidence, Place

if TYPE_CHECKING:
    from traincheck_relations.api import Example, RecordRef
    from traincheck_trace_schema.values import Json

MAX_RECORDS = 2
MAX_RECORD_BYTES = 2000  # of its JSON
_ITEMS = 12  # of a list, or of an object
_TEXT = 200  # characters
_DEPTH = 6
_TOO_LARGE: Json = {"cut": "too large"}
# They say which record of its trace it is: of no use without the trace.
_INTERNAL = frozenset(("seq", "t_ns", "thread", "id", "parent", "call", "between", "src"))


@attrs.frozen(kw_only=True)
class FirstHeld:
    """The first occasion in a run on which a claim held."""

    at: Place
    context: Context
    evidence: tuple[Evidence, ...]

    @classmethod
    def of(cls, example: Example) -> FirstHeld:
        """Keep an example: no more of it than some kilobytes."""
        return cls(
            at=place_of(example.at),
            context=example.context,
            evidence=tuple(map(_shown, example.evidence[:MAX_RECORDS])),
        )


def _shown(ref: RecordRef) -> Evidence:
    return Evidence(rank=ref.rank, shard=ref.shard, record=trimmed(ref.record))


def trimmed(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """Cut a record down to a size; what was cut says so, as in a trace.

    >>> trimmed({"kind": "call_begin", "seq": 7, "function": "f"})
    {'kind': 'call_begin', 'function': 'f'}
    """
    left = {name: _cut(of, _DEPTH) for name, of in record.items() if name not in _INTERNAL}
    sizes = {name: _size([name, of]) for name, of in left.items()}
    while sum(sizes.values()) > MAX_RECORD_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        if sizes[largest] <= _size([largest, _TOO_LARGE]):
            left.popitem()
            sizes = {name: sizes[name] for name in left}
        else:
            left[largest] = _TOO_LARGE
            sizes[largest] = _size([largest, _TOO_LARGE])
    return left


def _size(value: object) -> int:
    """Return how many bytes of JSON a value takes, or some more: what is no ASCII is escaped."""
    return len(ascii(value)) * 3 // 2


def _cut(value: Json, depth: int) -> Json:
    if isinstance(value, str):
        whole = len(value)
        return value if whole <= _TEXT else {"text": {"start": value[:_TEXT], "length": whole}}
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        return {"cut": type(value).__name__}
    more = len(value) - _ITEMS
    if isinstance(value, Mapping):
        kept = {name: _cut(of, depth - 1) for name, of in islice(value.items(), _ITEMS)}
        return kept if more <= 0 else {**kept, "cut": more}
    items = [_cut(of, depth - 1) for of in value[:_ITEMS]]
    return items if more <= 0 else [*items, {"cut": more}]
