"""A share of the run, as people write it: 5, 2.5 or 5%."""

from __future__ import annotations

import contextlib

import click

_WHOLE = 100.0


def percentage(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the percentage that an option says, between 0 and 100; for its `callback`."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        number = float(text.strip().removesuffix("%"))
        if 0 < number < _WHOLE:  # which "nan" is not
            return number
    raise click.BadParameter(
        f"{text!r} is no percentage above 0 and below 100; write it as 5 or 2.5", ctx, param
    )
