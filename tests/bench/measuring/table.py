"""Prints a figure a line, and what is asked for beside it."""

from __future__ import annotations


def report(what: str, figure: str, goal: str = "", *, is_met: bool = True) -> None:
    """Print a line of the table."""
    verdict = f"{goal}: {'met' if is_met else 'NOT met'}" if goal else ""
    print(f"{what:<28} {figure:>32}   {verdict}".rstrip(), flush=True)  # noqa: T201
