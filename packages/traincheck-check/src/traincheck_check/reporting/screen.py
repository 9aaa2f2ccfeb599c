"""The first screen: how much applied, the verdict, the top finding in words, where the rest is."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import click

from traincheck_check.diagnosing.diagnosis import some_of, times, when
from traincheck_trace_schema.results_file import (
    FAILED_NAME,
    NOT_TRIGGERED_NAME,
    PASSED_NAME,
    SUMMARY_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traincheck_check.judging.exit_code import Threshold
    from traincheck_check.reporting.api import Report
    from traincheck_trace_schema.results import Summary, Violation, ViolationGroup

RESULT_NAMES = (SUMMARY_NAME, FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME)
MAX_WIDTH = 110  # longer lines are hard to read
MAX_GROUPS = 8  # told on the screen; all of them stand in the summary
_INDENT = "   "
_LABEL = re.compile(r"(?:\d+\.|[A-Z][a-z ]+:) +")


def wrapped(lines: Iterable[str], width: int) -> Iterator[str]:
    """Break long lines at `width`, and indent what follows to where the text of a line begins."""
    for line in lines:
        text = click.unstyle(line).lstrip()
        label = _LABEL.match(text)
        indent = len(click.unstyle(line)) - len(text) + (label.end() if label else 0)
        yield (
            textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False)
            if text
            else line
        )


def screen(report: Report, limits: Threshold | None = None) -> Iterator[str]:
    """Yield the lines that a person reads first.

    Args:
        report: What was found out about a run.
        limits: From what on the check fails.
    """
    summary = report.outcome.summary
    yield verdict_line(report, limits, is_styled=True)
    for reason in summary.incomplete_because[:MAX_GROUPS]:
        yield f"{_INDENT}incomplete: {reason}"
    yield from _suppressed(summary)
    if summary.groups:
        yield ""
        yield from _in_full(summary.groups[0], summary)
    others = summary.groups[1:]
    if others:
        yield "Also:"
        yield from (_in_short(group, summary) for group in others[: MAX_GROUPS - 1])
        if more := len(others[MAX_GROUPS - 1 :]):
            yield f"{_INDENT}and {more} more in {report.folder / SUMMARY_NAME}"
        yield ""
    yield f"Results are in {report.folder}: {', '.join(RESULT_NAMES)}"


def verdict_line(
    report: Report, limits: Threshold | None = None, *, is_styled: bool = False
) -> str:
    """Say how much applied, and whether anything was broken."""
    outcome, summary = report.outcome, report.outcome.summary
    applied = summary.failed + summary.passed
    share = 100 * applied // summary.checked if summary.checked else 0
    verdict, colour = "no violation", "green" if summary.complete and applied else "yellow"
    if not applied:
        verdict = "nothing could be judged"
    elif summary.failed:
        verdict, colour = f"{summary.failed} broken", "red"
        if summary.known:
            verdict += f", {summary.known} of them known"
            colour = "red" if outcome.new else "yellow"
    if is_styled:
        verdict = click.style(verdict, fg=colour, bold=bool(summary.failed))
    trace = "" if summary.complete else ", but the trace is incomplete"
    if limits is not None and not limits.is_covered(outcome):
        trace += f"; at least {limits.min_coverage:g} % have to apply"
    run = f"{report.name}: " if report.name else ""
    return f"{run}{applied} of {summary.checked} invariants applied ({share} %): {verdict}{trace}."


def _suppressed(summary: Summary) -> Iterator[str]:
    """Yield what was not checked, by reason."""
    counts: Counter[str] = Counter()
    for each in summary.suppressions:
        counts[each.reason] += len(each.invariant_ids)
    for reason, count in counts.most_common(MAX_GROUPS):
        yield f"{_INDENT}{count} suppressed: {reason}"
    if len(counts) > MAX_GROUPS:
        more = sum(counts.values()) - sum(count for _, count in counts.most_common(MAX_GROUPS))
        yield f"{_INDENT}{more} suppressed for other reasons, see {SUMMARY_NAME}"


def _in_full(group: ViolationGroup, summary: Summary) -> Iterator[str]:
    members = _members(group, summary)
    lead = members[0]
    variables = dict.fromkeys(name for member in members for name in member.variables)
    yield click.style(f"1. {group.title}", bold=True)
    yield f"{_INDENT}Expected:  {lead.text_description}"
    yield f"{_INDENT}Since:     {_since(lead)}"
    if variables:
        yield f"{_INDENT}Variables: {some_of(variables)}"
    if lead.first.source is not None:
        yield f"{_INDENT}Source:    {lead.first.source}"
    yield f"{_INDENT}Look at:   {group.look_at}"
    if len(members) > 1:
        yield f"{_INDENT}Broken with it: {len(members) - 1} more"
    yield ""


def _in_short(group: ViolationGroup, summary: Summary) -> str:
    return f"{group.id + 1}. {group.title} ({_since(_members(group, summary)[0])})"


def _since(lead: Violation) -> str:
    ranks = f"rank{'s' if len(lead.ranks) > 1 else ''} {some_of(map(str, lead.ranks))}"
    return f"{when(lead.first)}, {ranks}, {times(lead.occurrences)}"


def _members(group: ViolationGroup, summary: Summary) -> list[Violation]:
    """Return the violations of a group, which are listed with the first in front."""
    return [each for each in summary.violations if each.group == group.id]
