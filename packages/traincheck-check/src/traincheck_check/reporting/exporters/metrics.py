"""The figures of a summary, by name; names in several exporters differ in their separator only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_trace_schema.results import Summary

GROUPS = ("invariants", "checks", "violations", "coverage", "trace")  # what names begin with


def metrics_of(summary: Summary) -> Mapping[str, float]:
    """Return the figures of a summary, by names of two or three parts with slashes between.

    What can't be known is left out: when the first violation was where there is none, say.
    """
    return dict(_metrics(summary))


def _metrics(summary: Summary) -> Iterator[tuple[str, float]]:
    applied = summary.failed + summary.passed
    yield "invariants/total", summary.checked + summary.suppressed
    yield "invariants/violated_unique", summary.failed
    yield "checks/total", summary.checked
    yield "checks/failed", summary.failed
    yield "checks/passed", summary.passed
    yield "checks/not_triggered", summary.not_triggered
    yield "checks/suppressed", summary.suppressed
    yield "checks/known", summary.known
    yield "checks/new", summary.failed - summary.known
    if summary.checked:
        yield "invariants/violation_rate_pct", 100 * summary.failed / summary.checked
        yield "coverage/applied_pct", 100 * applied / summary.checked
    if applied:
        yield "checks/pass_rate_pct", 100 * summary.passed / applied
    for kind, count in summary.unjudged.items():
        yield f"coverage/not_triggered/{_word(kind)}", count
    yield from _of_violations(summary)
    yield from _of_trace(summary)


def _of_violations(summary: Summary) -> Iterator[tuple[str, float]]:
    violations = summary.violations
    yield "violations/total", sum(each.occurrences for each in violations)
    yield "violations/distinct_invariants", len(violations)
    yield "violations/groups", len(summary.groups)
    if violations:
        yield "violations/first_step", min(each.first.step for each in violations)
        yield "violations/last_step", max(each.last.step for each in violations)


def _of_trace(summary: Summary) -> Iterator[tuple[str, float]]:
    yield "trace/is_complete", int(summary.complete)
    steps = sum(each.steps for each in summary.ranks)
    if steps:
        yield "trace/steps", max(each.steps for each in summary.ranks)
        yield "trace/recorded_pct", 100 * sum(each.recorded for each in summary.ranks) / steps
    shares = [each.recording_share for each in summary.ranks if each.recording_share is not None]
    if shares:
        yield "trace/recording_pct", 100 * max(shares)


def _word(kind: str) -> str:
    """Make a reason, as `never called, or not recorded`, a part of a name."""
    return "_".join("".join(c if c.isalnum() else " " for c in kind).split())
