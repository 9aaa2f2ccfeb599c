"""A sink whose service keeps something of its own for each run: begun, told, ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import attrs

from traincheck_check.reporting.api import Report
from traincheck_check.reporting.exporters.series import Series

if TYPE_CHECKING:
    from traincheck_check.reporting.exporters.series import Advance


class Target(Protocol):
    """What a service keeps of one run."""

    def tell(self, report: Report, advance: Advance) -> None:
        """Tell what is new: the steps of these calls rise."""

    def end(self, report: Report) -> None:
        """Tell what is told once, from the last report, which may be of a run that goes on."""


@attrs.define
class _Told:
    target: Target
    report: Report
    series: Series = attrs.field(factory=Series)


@attrs.define
class RunSink:
    """Tells each run to a target of its own, which ends with the run or with the session."""

    _begin: Callable[[Report], Target]
    _open: dict[str, _Told] = attrs.field(factory=dict)

    def update(self, report: Report) -> None:
        """Tell the latest of a run."""
        told = self._open.get(report.name)
        if told is None:
            told = self._open[report.name] = _Told(self._begin(report), report)
        told.report = report
        summary = report.outcome.summary
        advance = told.series.advance(summary)
        if advance is not None:
            told.target.tell(report, advance)
        if not summary.running:
            del self._open[report.name]
            told.target.end(report)

    def close(self) -> None:
        """End those of runs that go on."""
        while self._open:
            _, told = self._open.popitem()
            told.target.end(told.report)


def run_name(given: str | None, report: Report) -> str | None:
    """Return how a run is called: as asked for; of several, with the name of each."""
    return "-".join(filter(None, (given, report.name))) or None
