"""Brings together the violations that are likely to have one cause, and ranks the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_check.diagnosing.causes import pattern_of
from traincheck_check.judging.finding import Finding
from traincheck_trace_schema.occasion import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence


NEAR_STEPS = 1  # a cause shows in the same step, or in the next at the same call


@attrs.frozen(eq=False)
class Broken:
    """A finding with at least one violation."""

    finding: Finding
    first: Place
    last: Place
    known: bool = False  # a baseline names it

    def is_like(self, other: Broken) -> bool:
        """Whether two violations are likely to have one cause."""
        if abs(self.first.step - other.first.step) > NEAR_STEPS:
            return False
        mine, others = self.finding.variables.keys(), other.finding.variables.keys()
        if mine and others:
            return not mine.isdisjoint(others)
        return self.first.function == other.first.function

    @property
    def order(self) -> tuple[int, int, int, str]:
        """What comes first, comes first; then what tells more; then what happened more often."""
        finding = self.finding
        tells = pattern_of(finding.invariant).tells
        return self.first.step, tells, -finding.violations, finding.invariant.id


def broken(findings: Iterable[Finding], known: Container[str] = ()) -> list[Broken]:
    """Return the findings with a violation, the most telling first.

    Args:
        findings: The findings.
        known: Ids of invariants that a baseline names.
    """
    found = [
        Broken(each, each.first, each.last, each.invariant.id in known)
        for each in findings
        if each.first is not None and each.last is not None
    ]
    return sorted(found, key=lambda each: each.order)


def grouped(ranked: Sequence[Broken]) -> list[list[Broken]]:
    """Return groups of violations, each as ranked, the groups by their first."""
    groups: list[list[Broken]] = []
    for one in ranked:
        akin = [group for group in groups if any(one.is_like(other) for other in group)]
        if not akin:
            groups.append([one])
            continue
        akin[0].append(one)
        for group in akin[1:]:
            akin[0].extend(group)
            groups.remove(group)
    return [sorted(group, key=lambda each: each.order) for group in groups]
