"""Sizes as people write them: 500MB, 2GiB."""

from __future__ import annotations

import re

import click

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]I?)?B?", re.IGNORECASE)
_SMALLEST = 10**6  # the header alone takes some ten thousand bytes a process


def trace_size(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return the number of bytes that an option says; for its `callback`."""
    if text is None:
        return None
    size = parse_size(text)
    if size is None:
        raise click.BadParameter(f"{text!r} is no size; write it as 500MB or 2GiB", ctx, param)
    if size < _SMALLEST:
        raise click.BadParameter(f"{text!r} is less than 1MB", ctx, param)
    return size


def parse_size(text: str) -> int | None:
    """Return how many bytes a text means; None if it means none.

    >>> parse_size("1.5MB"), parse_size("2GiB"), parse_size("4096"), parse_size("much")
    (1500000, 2147483648, 4096, None)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, unit = match.groups(default="")
    return int(float(number) * (_UNITS | _BINARY_UNITS)[unit.upper()])
