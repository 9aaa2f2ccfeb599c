"""Writes `report.html` into the folder of results, unless it is asked not to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_check.reporting.api import Session, Sink


class HtmlReporter:
    """Writes the report."""

    name = "html"

    def options(self) -> Sequence[click.Option]:
        """Return the option that switches it off."""
        return (click.Option(["--no-html-report"], is_flag=True, help="Write no report.html."),)

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin, unless it is switched off."""
        if values["no_html_report"]:
            return None
        from traincheck_check.judging.exit_code import Threshold  # noqa: PLC0415  --help needs none
        from traincheck_check.reporting.html.sink import HtmlSink  # noqa: PLC0415

        threshold = Threshold(min_coverage=values.get("min_coverage", 0.0))
        return HtmlSink(session, threshold)
