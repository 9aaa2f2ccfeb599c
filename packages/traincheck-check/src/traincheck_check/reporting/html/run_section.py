"""What a page tells of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

import attrs

from traincheck_check.diagnosing.coverage import is_little
from traincheck_check.reporting.api import Report
from traincheck_check.reporting.html.findings import Card, Found, card_of, found_in
from traincheck_check.reporting.html.timeline import Chart, chart_of
from traincheck_check.reporting.screen import RESULT_NAMES, verdict_line

if TYPE_CHECKING:
    from traincheck_check.judging.exit_code import Threshold
    from traincheck_check.reporting.html.limits import Limits
    from traincheck_trace_schema.invariants import Invariant


@attrs.frozen(kw_only=True)
class Part:
    """Findings that are told together: the first in full, the others in a line each."""

    cards: tuple[Card, ...]
    lines: tuple[Found, ...]
    more: int  # that are not even told in a line

    def __len__(self) -> int:
        return len(self.cards) + len(self.lines) + self.more


@attrs.frozen(kw_only=True)
class RunSection:
    """A run, as the templates need it."""

    id: str
    report: Report
    verdict: str
    tone: str  # "bad", "odd" or "good"
    new: Part
    known: Part
    chart: Chart | None
    links: Mapping[str, str]  # name of a file of the results: where it lies beside the page


def section_of(
    report: Report,
    id_: str,
    *,
    invariants: Mapping[str, Invariant],
    threshold: Threshold,
    limits: Limits,
) -> RunSection:
    """Return what the page tells of a run."""
    found = found_in(report.outcome)
    verdicts = {each.invariant_id: each for each in report.outcome.failed}

    def part(of: list[Found]) -> Part:
        return Part(
            cards=tuple(
                card_of(each, verdicts, invariants, limits.fields) for each in of[: limits.cards]
            ),
            lines=tuple(of[limits.cards :][: limits.rows]),
            more=len(of[limits.cards :][limits.rows :]),
        )

    new = [each for each in found if not each.is_known]
    known = [each for each in found if each.is_known]
    # The name is that of a folder, which may be no text.
    folder = f"./{quote(report.name, errors='surrogateescape')}/" if report.name else "./"
    return RunSection(
        id=id_,
        report=report,
        verdict=verdict_line(report, threshold),
        tone=_tone(report, threshold),
        new=part(new),
        known=part(known),
        chart=chart_of([*new, *known], report.outcome.summary.ranks, limits.strips),
        links={name: f"{folder}{name}" for name in RESULT_NAMES},
    )


def _tone(report: Report, threshold: Threshold) -> str:
    outcome, summary = report.outcome, report.outcome.summary
    if outcome.new:
        return "bad"
    is_judged = summary.complete and not is_little(summary) and threshold.is_covered(outcome)
    return "good" if is_judged and not summary.failed and summary.passed else "odd"
