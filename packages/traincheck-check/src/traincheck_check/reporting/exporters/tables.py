"""Violations, groups and relations as tables: columns, and rows of plain values."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_trace_schema.results_file import FAILED_NAME, REPORT_NAME, SUMMARY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from traincheck_check.judging.outcome import Outcome
    from traincheck_trace_schema.results import Summary

Cell: TypeAlias = "str | int"
MAX_ROWS = 1000  # all of them stand in the summary


@attrs.frozen
class Table:
    """A table with a name."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def tables_of(outcome: Outcome) -> tuple[Table, ...]:
    """Return what is told of a run in tables."""
    summary = outcome.summary
    return _violations(summary), _groups(summary), _relations(outcome)


def files_of(folder: Path) -> Iterator[Path]:
    """Yield those files with results of a run that go to a service, as far as they are there."""
    for name in (SUMMARY_NAME, FAILED_NAME, REPORT_NAME):
        if (path := folder / name).is_file():
            yield path


def _violations(summary: Summary) -> Table:
    columns = (
        *("invariant_id", "relation", "expected", "happened", "first_step", "last_step"),
        *("occurrences", "ranks", "function", "variable", "source", "group", "known"),
    )
    rows = tuple(
        (
            each.invariant_id,
            each.relation,
            each.text_description,
            each.happened,
            each.first.step,
            each.last.step,
            each.occurrences,
            ", ".join(map(str, each.ranks)),
            each.first.function or "",
            each.first.variable or "",
            each.first.source or "",
            each.group,
            "yes" if each.known else "no",
        )
        for each in summary.violations[:MAX_ROWS]
    )
    return Table("violations", columns, rows)


def _groups(summary: Summary) -> Table:
    columns = ("group", "title", "diagnosis", "look_at", "first_step", "rank", "invariants")
    rows = tuple(
        (
            each.id,
            each.title,
            each.diagnosis,
            each.look_at,
            each.first.step,
            each.first.rank,
            len(each.invariant_ids),
        )
        for each in summary.groups[:MAX_ROWS]
    )
    return Table("violation_groups", columns, rows)


def _relations(outcome: Outcome) -> Table:
    failed, passed, not_triggered = (
        Counter(verdict.relation for verdict in verdicts)
        for verdicts in (outcome.failed, outcome.passed, outcome.not_triggered)
    )
    rows = tuple(
        (relation, failed[relation], passed[relation], not_triggered[relation])
        for relation in sorted({*failed, *passed, *not_triggered})
    )
    return Table("relation_breakdown", ("relation", "failed", "passed", "not_triggered"), rows)
