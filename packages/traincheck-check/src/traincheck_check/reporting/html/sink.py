"""Keeps `report.html` up to date while reports come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from traincheck_check.judging.exit_code import Threshold
from traincheck_check.reporting.api import Report, Session
from traincheck_check.reporting.html.limits import Limits, fitting
from traincheck_check.reporting.html.page import Page
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import write_atomically
from traincheck_trace_schema.results_file import REPORT_NAME


def _now() -> datetime:
    return datetime.now().astimezone()


@attrs.define(eq=False)
class HtmlSink:
    """Writes all that was told of the runs of a session into one page.

    Of a single run, which may go on, the page is written at each change; of several, when the first
    and when the last is told, since writing it takes longer with each.
    """

    _session: Session
    _threshold: Threshold
    _clock: Callable[[], datetime] = _now
    _reports: dict[str, Report] = attrs.field(factory=dict)
    _limits: Limits = attrs.field(factory=Limits)
    _is_behind: bool = False  # the page, which lacks what was told last

    def update(self, report: Report) -> None:
        """Tell the latest of a run.

        Raises:
            ConfigError: The page can't be written.
        """
        self._reports[report.name] = report
        self._is_behind = True
        if len(self._reports) == 1:
            try:
                self._write()
            except ConfigError:
                # While a run goes on it is tried again: a disk that is full may not stay so.
                if not report.outcome.summary.running:
                    raise

    def close(self) -> None:
        """Write what is not written, and let no page reload itself for ever."""
        if self._is_behind or any(each.outcome.summary.running for each in self._reports.values()):
            self._write(is_over=True)

    def _write(self, *, is_over: bool = False) -> None:
        page = Page(
            session=self._session,
            reports=tuple(self._reports.values()),
            threshold=self._threshold,
            written=self._clock(),
            is_over=is_over,
        )
        text, self._limits = fitting(page.html, self._limits)
        write_atomically(self._session.output_dir / REPORT_NAME, text)
        self._is_behind = False
