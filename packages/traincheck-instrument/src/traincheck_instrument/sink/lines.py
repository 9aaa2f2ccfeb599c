"""Records as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from traincheck_trace_schema.codec import dumps, loads

Record: TypeAlias = Mapping[str, Any]
Line: TypeAlias = Record | str  # a record, or the text of one that is no fact, its kind first

_NOWHERE = {"thread": 0, "seq": 0, "step": -1}
_PLACE = (*_NOWHERE, "eval_pass", "eval_step", "micro_step")
_KIND_AT = len('{"kind":"')
_KIND_UNTIL = _KIND_AT + len('call_begin"')  # the longest that comes as text
_REFUSED = (TypeError, ValueError, OverflowError, RecursionError)


def encode_lines(records: Sequence[Line]) -> tuple[bytes, Counter[str]]:
    """Return records as lines, and how many there are of each kind.

    A gap stands in place of one that has no JSON.
    """
    try:
        texts = [*map(_text, records)]
    except _REFUSED:
        records = [*map(_or_gap, records)]
        texts = [*map(_text, records)]
    texts.append("")  # the last line ends too
    return "\n".join(texts).encode(), _kinds_of(records)


def _kinds_of(records: Sequence[Line]) -> Counter[str]:
    """Count the kinds; of texts their beginnings, which are few, before these are looked into."""
    beginnings = Counter([one[:_KIND_UNTIL] for one in records if type(one) is str])
    kinds = Counter([kind_of(one) for one in records if type(one) is not str])
    for beginning, count in beginnings.items():
        kinds[kind_of(beginning)] += count
    return kinds


def kind_of(line: Line) -> str:
    """Return the kind of a record."""
    if isinstance(line, str):
        return line[_KIND_AT : line.index('"', _KIND_AT)]
    kind: str = line["kind"]
    return kind


def record_of(line: Line) -> Record:
    """Return the record that a text is of."""
    record: Record = loads(line) if isinstance(line, str) else line
    return record


def gap(reason: str, near: Record, *, count: int | None, detail: str = "") -> Record:
    """Make the record that says that others are missing, where one of them was."""
    place = {key: near[key] for key in _PLACE if key in near}
    told = {"detail": detail} if detail else {}
    return {"kind": "gap", **_NOWHERE, **place, "reason": reason, "count": count, **told}


def last_gap(reason: str, last: Record, detail: str) -> Record:
    """Make the record that says why none comes after the last one."""
    return gap(reason, {**last, "seq": last.get("seq", -1) + 1}, count=None, detail=detail)


def _text(line: Line) -> str:
    return line if isinstance(line, str) else dumps(line)


def _or_gap(record: Line) -> Line:
    if isinstance(record, str):
        return record
    try:
        dumps(record)
    except _REFUSED as error:
        detail = f"{record['kind']} could not be written: {error}"
        return gap("encoding", record, count=1, detail=detail)
    return record
