"""Annotations of a GitHub workflow: each group of violations at its source line.

What a workflow understands: docs.github.com, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.reporting.screen import verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_check.judging.exit_code import Threshold
    from traincheck_check.reporting.api import Report
    from traincheck_trace_schema.results import ViolationGroup


def workflow_commands(report: Report, limits: Threshold) -> Iterator[str]:
    """Yield a line for each group of violations, and one that says how much applied."""
    summary = report.outcome.summary
    new = {each.group for each in summary.violations if not each.known}
    is_failure = limits.is_failure(report.outcome)
    for group in summary.groups:
        counts = group.id in new or limits.fail_on == "any"
        level = "error" if counts and is_failure else "warning" if counts else "notice"
        yield f"::{level} {_place(group)}::{_data(f'{group.diagnosis} Look at: {group.look_at}')}"
    level = "notice" if limits.is_judged(report.outcome) else "warning"
    yield f"::{level} title=TrainCheck::{_data(verdict_line(report, limits))}"


def _place(group: ViolationGroup) -> str:
    title = f"title={_property(f'TrainCheck: {group.title}')}"
    file, colon, line = (group.first.source or "").rpartition(":")
    if not colon or not line.isdecimal():
        return title
    return f"file={_property(file)},line={line},{title}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
