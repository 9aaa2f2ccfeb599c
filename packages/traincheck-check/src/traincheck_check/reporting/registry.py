"""Finds the installed reporters, and runs those that are asked for."""

from __future__ import annotations

from functools import cache, partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.api import ENTRY_POINTS, Reporter, Sink
from traincheck_trace_schema.cli import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.metadata import EntryPoint

    from traincheck_check.reporting.api import Report, Session


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


@attrs.define
class Sinks:
    """The sinks of a session. One that fails is told, and dropped; the results are not lost."""

    _open: dict[str, Sink]

    @classmethod
    def started(cls, values: Mapping[str, Any], session: Session) -> Sinks:
        """Begin all that the options ask for.

        Raises:
            ConfigError: One of them can't begin.
        """
        begun = ((each.name, each.start(values, session)) for each in reporters())
        return cls({name: sink for name, sink in begun if sink is not None})

    def update(self, report: Report) -> None:
        """Tell the latest of a run."""
        for name, sink in [*self._open.items()]:
            self._try(name, partial(sink.update, report))

    def close(self) -> None:
        """End them all."""
        for name, sink in [*self._open.items()]:
            self._try(name, sink.close)
        self._open.clear()

    def _try(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001  a service may fail in any way
            del self._open[name]
            warn(f"reporter {name} failed, and is left out: {type(error).__name__}: {error}")
