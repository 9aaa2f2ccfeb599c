"""Numbers, texts and bytes: as JSON has them, or as an object that says what they are.

Instances of subclasses are taken for what the base type holds; their own methods are not called.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

Json: TypeAlias = Any

MAX_TEXT = 200
MAX_NAME = 4096  # of a path or a variable: what is longer names nothing
INT64 = 2**63
# The time to write an integer as text grows with the square of its length, and Python refuses one
# that is longer than `sys.set_int_max_str_digits` says, which is never below 640 digits.
_MAX_BITS = 640


def is_plain(value: object) -> bool:
    """Whether JSON has a value as it is: None, a boolean, a number, or a short text in ASCII."""
    kind = type(value)
    if kind is int:
        return -INT64 <= value < INT64  # type: ignore[operator]  # it is one
    if kind is float:
        return math.isfinite(value)  # type: ignore[arg-type]  # as above
    if kind is str:
        return len(value) <= MAX_TEXT and value.isascii()  # type: ignore[arg-type,attr-defined]  # as above
    return value is None or kind is bool


def encode_integer(value: int) -> Json:
    """Return an integer: as it is, as text beyond 64 bit, by its length where it is huge."""
    if -INT64 <= value < INT64:
        return value
    if value.bit_length() <= _MAX_BITS:
        return {"int": str(value)}
    attributes = {"bits": value.bit_length(), "negative": value < 0}
    return {"object": {"type": "builtins.int", "attributes": attributes}}


def encode_float(value: float) -> Json:
    """Return a number, or its name if JSON lacks it."""
    return value if math.isfinite(value) else {"float": str(value)}


def encode_complex(value: complex) -> Json:
    """Return a complex number by its parts."""
    parts = {"real": encode_float(value.real), "imag": encode_float(value.imag)}
    return {"object": {"type": "builtins.complex", "attributes": parts}}


def encode_text(value: str) -> Json:
    """Return a text, or the start of a long one."""
    length = str.__len__(value)
    start = start_of_text(value)
    return start if length <= MAX_TEXT else {"text": {"start": start, "length": length}}


def start_of_text(value: str, length: int = MAX_TEXT) -> str:
    """Return the start of a text; a lone surrogate, which UTF-8 has no form for, is replaced."""
    start = str.__getitem__(value, slice(length))
    return start if start.isascii() else start.encode("utf-8", "replace").decode("utf-8")


def encode_bytes(length: int) -> Json:
    """Return bytes by their number."""
    return {"bytes": {"length": length}}
