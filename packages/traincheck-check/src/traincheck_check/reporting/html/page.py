"""Builds the page of a session from what was told of its runs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from traincheck_check.__about__ import __version__
from traincheck_check.diagnosing import coverage, diagnosis
from traincheck_check.judging.exit_code import Threshold
from traincheck_check.reporting.api import Report, Session
from traincheck_check.reporting.html.environment import environment
from traincheck_check.reporting.html.run_section import section_of

if TYPE_CHECKING:
    from traincheck_check.reporting.html.limits import Limits

RELOAD_SECONDS = 10  # while a run goes on


@attrs.frozen(kw_only=True)
class Page:
    """All that a page tells, but for how much of it."""

    session: Session
    reports: tuple[Report, ...]
    threshold: Threshold
    written: datetime
    is_over: bool = False  # nothing more will be told, even of runs that seem to go on

    def html(self, limits: Limits) -> str:
        """Return the page, which shows so much."""
        part = limits.shared(len(self.reports))
        sections = [
            section_of(
                report,
                f"run{number}",
                invariants=self.session.invariants,
                threshold=self.threshold,
                limits=part,
            )
            for number, report in enumerate(self.reports, 1)
        ]
        is_live = self.session.mode == "live"
        is_running = any(each.outcome.summary.running for each in self.reports)
        template = environment().get_template("page.html")
        return template.render(
            sections=sections,
            limits=part,
            say=diagnosis,
            coverage=coverage,
            run_ids=[name for each in self.reports for name in each.outcome.summary.run_ids],
            # Of a run that has ended, the same check gives the same page.
            written=f"{self.written:%Y-%m-%d %H:%M:%S %Z}" if is_live else "",
            version=__version__,
            reload=RELOAD_SECONDS if is_running and not self.is_over else None,
            is_cut_short=is_running and self.is_over,
        )
