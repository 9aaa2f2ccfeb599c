"""Finds what ujson lets through in a line of JSON, and what would be read differently elsewhere."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from traincheck_trace_schema.codec import dumps, loads
from traincheck_trace_schema.constraints import MAX_DEPTH

_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_UTF8_MARK = b"\xef\xbb\xbf"
_SHOWN = 30  # characters around the place where a text stops being JSON
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def problem_of(line: bytes, parsed: object) -> str:
    """Say what is wrong with a line that ujson has parsed; empty if nothing is.

    Duplicate keys, `NaN` and `Infinity`, numbers that overflow, lone surrogates, invalid UTF-8.
    """
    if is_as_we_write(line, parsed) and _SURROGATE.search(line) is None:
        return ""
    try:
        _read_strictly(line)
    except (ValueError, RecursionError) as error:
        return worded(error)
    return ""


def why_no_json(line: bytes) -> str:
    """Say why ujson cannot parse a line, and where in it."""
    if line.startswith(_BYTE_ORDER_MARKS) or line[:8].count(0) > 1:
        return "is UTF-16 text; documents are UTF-8"
    if line.startswith(_UTF8_MARK):
        return "begins with a byte order mark, which is no JSON; write UTF-8 without one"
    if not line.strip():
        return "is no JSON: the line is empty"
    try:
        _read_strictly(line)
    except (ValueError, RecursionError) as error:
        return worded(error)
    try:
        loads(line)
    except ValueError as error:
        return f"is no JSON that readers take: {error}"
    return ""


def _read_strictly(line: bytes) -> None:
    strict = json.loads(
        line.decode(),
        object_pairs_hook=_without_duplicates,
        parse_constant=_refuse_constant,
        parse_float=_finite,
        parse_int=_integer,
    )
    json.dumps(strict, ensure_ascii=False).encode()


def worded(error: Exception) -> str:
    """Say what an error of decoding, parsing or encoding means, in one line."""
    if isinstance(error, RecursionError):
        return f"is nested more than {MAX_DEPTH} levels deep"
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"is no UTF-8 text: byte 0x{byte:02x} at column {error.start + 1}"
    if isinstance(error, UnicodeEncodeError):
        return "holds half of a surrogate pair, which is no character"
    if isinstance(error, json.JSONDecodeError):
        what = (error.msg[:1].lower() + error.msg[1:]).removesuffix(" at")
        near = error.doc[max(error.pos - _SHOWN, 0) : error.pos + _SHOWN].strip()
        return f"is no JSON: {what} at column {error.pos + 1}, in {near!r}"
    return str(error)


def is_as_we_write(line: bytes, parsed: object) -> bool:
    """Whether the line is the very one that we would write: the quick answer for nearly all."""
    try:
        return dumps(parsed).encode() == line
    except (OverflowError, ValueError):
        return False


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"has the key {twice!r} twice in one object")
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(f'has the token {word}, which is no JSON; write {{"float": ...}} instead')


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:  # Python's limit of digits, against hostile input
        raise ValueError(f"has a number of {len(digits)} digits, which is too long") from error


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"has the number {digits}, which is too large")
    return number
