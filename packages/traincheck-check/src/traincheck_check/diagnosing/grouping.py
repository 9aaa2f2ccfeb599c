"""Brings together the violations that are likely to have one cause, and ranks the groups."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from traincheck_check.diagnosing.likeness import NEAR_STEPS, Likeness
from traincheck_check.diagnosing.pattern import Pattern, pattern_of
from traincheck_check.judging.finding import Finding
from traincheck_trace_schema.occasion import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence


@attrs.frozen(eq=False, slots=False)
class Broken:
    """A finding with at least one violation."""

    finding: Finding
    first: Place
    last: Place
    known: bool = False  # a baseline names it

    @cached_property
    def pattern(self) -> Pattern:
        """The kind of its claim."""
        return pattern_of(self.finding.invariant)

    @cached_property
    def order(self) -> tuple[int, int, float, int, str]:
        """What comes first, comes first; then what tells more, is likelier a bug, is more often."""
        invariant = self.finding.invariant
        return (
            self.first.step,
            self.pattern.tells,
            -(invariant.likelihood or 0),
            -self.finding.violations,
            invariant.id,
        )


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
    """Return groups of violations, the groups by their first.

    In a group comes first what tells most of what began with the first, within `NEAR_STEPS`.
    """
    likeness = Likeness()
    for number, one in enumerate(ranked):
        likeness.add(number, one.first, one.finding.variables, one.pattern)
    return [_led([ranked[number] for number in group]) for group in likeness.groups()]


def _led(group: Sequence[Broken]) -> list[Broken]:
    begun = min(each.first.step for each in group)
    return sorted(
        group,
        key=lambda each: (each.first.step - begun > NEAR_STEPS, each.pattern.tells, each.order),
    )
