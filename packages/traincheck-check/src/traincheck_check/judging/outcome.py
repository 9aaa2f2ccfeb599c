"""From what checking found out to the documents that tell it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from traincheck_check.diagnosing.diagnosis import group_of
from traincheck_check.diagnosing.grouping import Broken, broken, grouped
from traincheck_check.judging.output_folder import make_folder
from traincheck_check.judging.reasons import why_not_triggered
from traincheck_trace_schema.results import Summary, Verdict, Violation
from traincheck_trace_schema.results_file import (
    FAILED_NAME,
    NOT_TRIGGERED_NAME,
    PASSED_NAME,
    SUMMARY_NAME,
    write_summary,
    write_verdicts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from traincheck_check.judging.finding import Finding
    from traincheck_check.judging.judge import Checked


@attrs.frozen(kw_only=True)
class Outcome:
    """The documents of one checked run; each verdict lists in the order of the invariants."""

    summary: Summary
    failed: tuple[Verdict, ...]
    passed: tuple[Verdict, ...]
    not_triggered: tuple[Verdict, ...]

    @property
    def new(self) -> int:
        """How many invariants were broken that no baseline names."""
        return self.summary.failed - self.summary.known

    def write(self, folder: Path) -> None:
        """Write them into a folder, which is made if need be.

        Raises:
            ConfigError: They cannot be written.
        """
        make_folder(folder)
        write_verdicts(folder / FAILED_NAME, self.failed)
        write_verdicts(folder / PASSED_NAME, self.passed)
        write_verdicts(folder / NOT_TRIGGERED_NAME, self.not_triggered)
        # Last: whoever waits for the summary finds the others complete.
        write_summary(folder / SUMMARY_NAME, self.summary)


def outcome_of(checked: Checked) -> Outcome:
    """Sum up what checking a run found out so far."""
    claims = checked.claims
    verdicts = [_verdict(finding, checked) for finding in checked.findings]
    failed = tuple(each for each in verdicts if each.verdict == "failed")
    passed = tuple(each for each in verdicts if each.verdict == "passed")
    not_triggered = tuple(each for each in verdicts if each.verdict == "not_triggered")
    groups = grouped(broken(checked.findings, claims.known))
    incomplete_because = checked.incomplete_because
    summary = Summary(
        run_ids=() if checked.trace.run_id is None else (checked.trace.run_id,),
        checked=len(verdicts),
        failed=len(failed),
        passed=len(passed),
        not_triggered=len(not_triggered),
        suppressed=sum(len(each.invariant_ids) for each in claims.suppressed),
        known=sum(each.invariant_id in claims.known for each in failed),
        running=checked.running,
        complete=not incomplete_because,
        incomplete_because=incomplete_because,
        violations=tuple(
            _violation(each, group=number) for number, group in enumerate(groups) for each in group
        ),
        groups=tuple(
            group_of(number, group, claims.relations) for number, group in enumerate(groups)
        ),
        suppressions=claims.suppressed,
        unjudged=dict(Counter(each.reason_kind for each in not_triggered).most_common()),
        ranks=checked.ranks,
    )
    return Outcome(summary=summary, failed=failed, passed=passed, not_triggered=not_triggered)


def _verdict(finding: Finding, checked: Checked) -> Verdict:
    invariant = finding.invariant
    has_failed_relation = any(fault.relation == invariant.relation for fault in checked.faults)
    verdict = Verdict(
        invariant_id=invariant.id,
        relation=invariant.relation,
        text_description=invariant.text_description,
        verdict="passed",
        occasions=finding.occasions,
        violations=finding.violations,
        first=finding.first,
        evidence=tuple(finding.evidence),
    )
    if finding.violations:
        return attrs.evolve(verdict, verdict="failed")
    if not finding.occasions or has_failed_relation:
        reason = why_not_triggered(finding, checked)
        return attrs.evolve(
            verdict, verdict="not_triggered", reason=reason.text, reason_kind=reason.kind
        )
    return verdict


def _violation(one: Broken, *, group: int) -> Violation:
    finding = one.finding
    return Violation(
        invariant_id=finding.invariant.id,
        relation=finding.invariant.relation,
        text_description=finding.invariant.text_description,
        first=one.first,
        last=one.last,
        occurrences=finding.violations,
        ranks=tuple(sorted(finding.ranks)),
        variables=tuple(finding.variables),
        happened=finding.happened,
        group=group,
        known=one.known,
        timeline=finding.timelines.told(),
        evidence=finding.evidence,
        reference=finding.invariant.reference,
    )
