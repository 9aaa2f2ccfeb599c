"""From what checking found out to the documents that tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_check.diagnosis import group_of
from traincheck_check.grouping import Broken, broken, grouped
from traincheck_check.reasons import why_not_triggered
from traincheck_trace_schema.errors import ConfigError
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
    from collections.abc import Sequence
    from pathlib import Path

    from traincheck_check.checking import Checked
    from traincheck_check.finding import Finding
    from traincheck_trace_schema.results import Suppressed


@attrs.frozen(kw_only=True)
class Outcome:
    """The documents of one checked run; each verdict lists in the order of the invariants."""

    summary: Summary
    failed: tuple[Verdict, ...]
    passed: tuple[Verdict, ...]
    not_triggered: tuple[Verdict, ...]

    def write(self, folder: Path) -> None:
        """Write them into a folder, which is made if need be.

        Raises:
            ConfigError: They cannot be written.
        """
        _make_folder(folder)
        write_verdicts(folder / FAILED_NAME, self.failed)
        write_verdicts(folder / PASSED_NAME, self.passed)
        write_verdicts(folder / NOT_TRIGGERED_NAME, self.not_triggered)
        # Last: whoever waits for the summary finds the others complete.
        write_summary(folder / SUMMARY_NAME, self.summary)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be made: {error.strerror or error}; choose another with -o"
        ) from error


def outcome_of(checked: Checked, suppressed: Sequence[Suppressed] = ()) -> Outcome:
    """Sum up what checking a run found out, and what was not checked since it is suppressed."""
    verdicts = [_verdict(finding, checked) for finding in checked.findings]
    failed = tuple(each for each in verdicts if each.verdict == "failed")
    passed = tuple(each for each in verdicts if each.verdict == "passed")
    not_triggered = tuple(each for each in verdicts if each.verdict == "not_triggered")
    groups = grouped(broken(checked.findings))
    incomplete_because = checked.incomplete_because
    summary = Summary(
        run_ids=(checked.run.run_id,),
        checked=len(verdicts),
        failed=len(failed),
        passed=len(passed),
        not_triggered=len(not_triggered),
        suppressed=sum(len(each.invariant_ids) for each in suppressed),
        complete=not incomplete_because,
        incomplete_because=incomplete_because,
        violations=tuple(
            _violation(each, group=number) for number, group in enumerate(groups) for each in group
        ),
        groups=tuple(group_of(number, group) for number, group in enumerate(groups)),
        suppressions=tuple(suppressed),
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
        return attrs.evolve(verdict, verdict="not_triggered", reason=reason)
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
    )
