"""Finds the installed reporters. Commands do so for their help: it imports nothing heavy."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from traincheck_trace_schema.cli import warn

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from traincheck_check.reporting.api import Reporter

ENTRY_POINTS = "traincheck.reporters"


@cache
def reporters() -> tuple[Reporter, ...]:
    """Return the installed reporters, by name; one that can't be loaded is told and left out."""
    entries = sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    return tuple(filter(None, map(_loaded, entries)))


def _loaded(entry: EntryPoint) -> Reporter | None:
    try:
        reporter: Reporter = entry.load()()
    except Exception as error:  # noqa: BLE001  a plugin may fail in any way
        source = entry.dist.name if entry.dist else entry.value
        reason = f"{type(error).__name__}: {error}"
        warn(f"reporter {entry.name!r} of {source} can't be loaded: {reason}")
        return None
    return reporter
