"""The first screen: how much applied, the verdict, the top finding in words, where the rest is."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import click

from traincheck_check.diagnosing.coverage import applied, is_little, judged_steps, unjudged
from traincheck_check.diagnosing.diagnosis import (
    how_often,
    on_ranks,
    some_of,
    sources_of,
    times,
    title_of,
)
from traincheck_trace_schema.results_file import (
    FAILED_NAME,
    NOT_TRIGGERED_NAME,
    PASSED_NAME,
    SUMMARY_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_check.judging.exit_code import Threshold
    from traincheck_check.judging.outcome import Outcome
    from traincheck_check.reporting.api import Report
    from traincheck_trace_schema.results import Summary, Violation, ViolationGroup

RESULT_NAMES = (SUMMARY_NAME, FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME)
MAX_WIDTH = 110  # longer lines are hard to read
MAX_GROUPS = 8  # told on the screen; all of them stand in the summary
MAX_WITH = 3  # titles of what was broken with the first
_TITLE = 160  # characters of these
_INDENT = "   "
_LABEL = re.compile(r"(?:\d+\.|[A-Z][a-z ]+:|-) +(?:- +)?")


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
    yield from (f"{_INDENT}{line}" for line in unjudged(summary))
    yield from _suppressed(summary)
    if summary.groups:
        yield ""
        yield from _in_full(summary.groups[0], report.outcome)
    else:
        yield from _held(report.outcome)
    others = summary.groups[1:]
    if others:
        yield "Also:"
        yield from (_in_short(group, report.outcome) for group in others[: MAX_GROUPS - 1])
        if more := len(others[MAX_GROUPS - 1 :]):
            yield f"{_INDENT}and {more} more in {report.folder / SUMMARY_NAME}"
        yield ""
    yield f"Results are in {report.folder}: {', '.join(RESULT_NAMES)}"


def verdict_line(
    report: Report, limits: Threshold | None = None, *, is_styled: bool = False
) -> str:
    """Say how much applied, and whether anything was broken."""
    outcome, summary = report.outcome, report.outcome.summary
    number = applied(summary)
    share = 100 * number // summary.checked if summary.checked else 0
    verdict, colour = "no violation", "green" if summary.complete else "yellow"
    if is_little(summary):
        verdict, colour = "no violation, which says little", "yellow"
    if not number:
        verdict, colour = "nothing could be judged", "yellow"
    elif summary.failed:
        verdict, colour = f"{summary.failed} broken", "red"
        if summary.known:
            verdict += f", {summary.known} of them known"
            colour = "red" if outcome.new else "yellow"
    if is_styled:
        verdict = click.style(verdict, fg=colour, bold=bool(summary.failed))
    trace = ", so far" if summary.running else ", but the trace is incomplete"
    trace = "" if summary.complete else trace
    if limits is not None and not limits.is_covered(outcome):
        trace += f"; at least {limits.min_coverage:g} % have to apply"
    run = f"{report.name}: " if report.name else ""
    return f"{run}{number} of {summary.checked} invariants applied ({share} %): {verdict}{trace}."


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


def _held(outcome: Outcome) -> Iterator[str]:
    """Yield what can be said where nothing was broken: what held, and over how much of training."""
    counts = Counter(each.relation for each in outcome.passed).most_common()
    if not counts:
        return
    told = some_of(f"{count} {name}" for name, count in counts)
    steps = judged_steps(outcome.summary)
    yield f"{_INDENT}held{f' in {steps}' if steps else ''}: {told}"


def _in_full(group: ViolationGroup, outcome: Outcome) -> Iterator[str]:
    members = _members(group, outcome.summary)
    lead = members[0]
    variables = dict.fromkeys(name for member in members for name in member.variables)
    yield click.style(f"1. {group.title}", bold=True)
    yield f"{_INDENT}Expected:  {lead.text_description}"
    yield f"{_INDENT}Since:     {_since(lead, outcome)}"
    if variables:
        yield f"{_INDENT}Variables: {some_of(variables)}"
    if sources := sources_of([each.first for each in members]):
        yield f"{_INDENT}Source:    {some_of(sources)}"
    if lead.reference is not None:
        at = lead.reference.at
        where = "" if at.source is None else f", at {at.source}"
        yield f"{_INDENT}Reference: held first at {at.when}{where}"
    label = "Look at:   "
    for cause in group.look_at.split("; "):
        yield f"{_INDENT}{label}- {cause}"
        label = " " * len(label)
    yield from _with_it(members)
    yield ""


def _with_it(members: Sequence[Violation]) -> Iterator[str]:
    """Yield what was broken with the first, of different relations rather than of one."""
    titles = dict.fromkeys(title_of(each.happened, each.text_description) for each in members)
    of = {title_of(each.happened, each.text_description): each.relation for each in members}
    count: Counter[str] = Counter()
    places = {}
    for title in titles:
        places[title] = count[of[title]]
        count[of[title]] += 1
    others = sorted([*titles][1:], key=places.__getitem__)
    label = "With it:   "
    for title in others[:MAX_WITH]:
        yield f"{_INDENT}{label}- {textwrap.shorten(title, _TITLE, placeholder=' ...')}"
        label = " " * len(label)
    if more := len(others[MAX_WITH:]):
        yield f"{_INDENT}{label}- and {more} more in {SUMMARY_NAME}"


def _in_short(group: ViolationGroup, outcome: Outcome) -> str:
    lead, *others = _members(group, outcome.summary)
    source = f", at {lead.first.source}" if lead.first.source else ""
    more = f"; and {len(others)} more with it" if others else ""
    return f"{group.id + 1}. {group.title} ({_since(lead, outcome)}{source}{more})"


def _since(lead: Violation, outcome: Outcome) -> str:
    occasions = {each.invariant_id: each.occasions for each in outcome.failed}
    known = occasions.get(lead.invariant_id)
    often = times(lead.occurrences) if known is None else how_often(lead.occurrences, known)
    last = f", last at {lead.last.when}" if lead.last.step != lead.first.step else ""
    return f"{lead.first.when}, {on_ranks(lead.ranks)}, {often}{last}"


def _members(group: ViolationGroup, summary: Summary) -> list[Violation]:
    """Return the violations of a group, which are listed with the first in front."""
    return [each for each in summary.violations if each.group == group.id]
