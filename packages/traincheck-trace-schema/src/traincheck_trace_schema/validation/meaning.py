"""What must hold within a document beyond its schema: ids, totals, what refers to what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.invariant_file import invariant_id
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.plan import Plan
from traincheck_trace_schema.progress import Progress
from traincheck_trace_schema.results import Summary, Verdict
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Document = Invariant | Plan | Summary | Verdict | Suppression | Progress

_CLASSES: Mapping[str, type[Document]] = {
    "invariants": Invariant,
    "plan": Plan,
    "suppressions": Suppression,
    "progress": Progress,
}


def class_of(document: str, parsed: Mapping[str, Any]) -> type[Document]:
    """Return the class that what is neither a trace nor a result is read as, or a result."""
    if document == "results":
        return Verdict if "verdict" in parsed else Summary
    return _CLASSES[document]


def problems_within(document: Document) -> Iterator[str]:
    """Yield what contradicts itself in a document that its schema accepts."""
    if isinstance(document, Invariant):
        yield from _invariant(document)
    elif isinstance(document, Summary):
        yield from _summary(document)
    elif isinstance(document, Verdict):
        yield from _verdict(document)


def _invariant(invariant: Invariant) -> Iterator[str]:
    expected = invariant_id(invariant.relation, invariant.params, invariant.precondition)
    if invariant.id != expected:
        yield f"field 'id' must be {expected!r}, which its content gives; got {invariant.id!r}"


def _summary(summary: Summary) -> Iterator[str]:
    total = summary.failed + summary.passed + summary.not_triggered
    if summary.checked != total:
        yield f"field 'checked' must be {total}, the sum of the verdicts; got {summary.checked}"
    if summary.failed != len(summary.violations):
        told = len(summary.violations)
        yield f"field 'failed' must be {told}, the number of violations; got {summary.failed}"
    if summary.complete and summary.incomplete_because:
        yield "field 'complete' is true, and 'incomplete_because' says why not"
    suppressed = sum(len(each.invariant_ids) for each in summary.suppressions)
    if summary.suppressed != suppressed:
        yield (
            f"field 'suppressed' must be {suppressed}, the number of ids in 'suppressions'; "
            f"got {summary.suppressed}"
        )
    groups = {group.id for group in summary.groups}
    for at, violation in enumerate(summary.violations):
        if violation.group not in groups:
            yield f"field 'violations[{at}].group' must be the id of a group; got {violation.group}"


def _verdict(verdict: Verdict) -> Iterator[str]:
    if (verdict.verdict == "failed") != (verdict.violations > 0):
        yield f"says {verdict.verdict} and has {verdict.violations} violations"
    if verdict.violations > verdict.occasions:
        yield f"has {verdict.violations} violations on {verdict.occasions} occasions"
