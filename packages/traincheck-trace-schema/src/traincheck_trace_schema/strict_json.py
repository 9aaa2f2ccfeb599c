"""Finds what ujson lets through in a line of JSON, and what would be read differently elsewhere."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from traincheck_trace_schema.codec import dumps

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
        return _worded(error)
    return ""


def _read_strictly(line: bytes) -> None:
    strict = json.loads(
        line.decode(),
        object_pairs_hook=_without_duplicates,
        parse_constant=_refuse_constant,
        parse_float=_finite,
    )
    json.dumps(strict, ensure_ascii=False).encode()


def _worded(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deep to be read"
    if isinstance(error, UnicodeDecodeError):
        return "is no UTF-8 text"
    if isinstance(error, UnicodeEncodeError):
        return "holds half of a surrogate pair, which is no character"
    if isinstance(error, json.JSONDecodeError):
        return f"is no JSON: {error.msg} at column {error.colno}"
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
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"has the key {twice!r} twice in one object")
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(f'has the token {word}, which is no JSON; write {{"float": ...}} instead')


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"has the number {digits}, which is too large")
    return number
