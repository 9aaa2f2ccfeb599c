"""Which exit code the outcomes of a check give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from traincheck_trace_schema.errors import EXIT_CLEAN, EXIT_INCOMPLETE, EXIT_VIOLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_check.judging.outcome import Outcome

FailOn: TypeAlias = "Literal['any', 'new'] | int"


@attrs.frozen(kw_only=True)
class Threshold:
    """From which outcomes on a check fails.

    `fail_on`: any broken invariant, only one that no baseline names, or so many of these in a run.
    `min_coverage`: the percentage of the invariants that has to apply.
    """

    fail_on: FailOn = "new"
    min_coverage: float = 0.0
    exit_zero: bool = False

    def exit_code(self, outcomes: Iterable[Outcome]) -> int:
        """Return the exit code of a check of several runs."""
        found = list(outcomes)
        if self.exit_zero:
            return EXIT_CLEAN
        if any(map(self.is_failure, found)):
            return EXIT_VIOLATIONS
        if all(map(self.is_judged, found)):
            return EXIT_CLEAN
        return EXIT_INCOMPLETE

    def is_covered(self, outcome: Outcome) -> bool:
        """Whether enough of the invariants applied."""
        summary = outcome.summary
        return 100 * (summary.failed + summary.passed) >= self.min_coverage * summary.checked

    def is_failure(self, outcome: Outcome) -> bool:
        """Whether enough was broken for the check to fail."""
        return self.is_reached(failed=outcome.summary.failed, new=outcome.new)

    def is_reached(self, *, failed: int, new: int) -> bool:
        """Whether so many broken invariants, of which so many are not known, are enough."""
        if self.fail_on == "any":
            return failed > 0
        return new >= (1 if self.fail_on == "new" else self.fail_on)

    def is_judged(self, outcome: Outcome) -> bool:
        """Whether "no violation" says something: the trace is whole, and enough applied."""
        summary = outcome.summary
        has_applied = summary.failed + summary.passed > 0
        return summary.complete and has_applied and self.is_covered(outcome)
