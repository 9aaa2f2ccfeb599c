"""The sinks of a session: those of the installed reporters that are asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.api import Sink
from traincheck_check.reporting.installed import reporters
from traincheck_trace_schema.cli import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincheck_check.reporting.api import Report, Session


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
