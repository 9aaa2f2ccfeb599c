"""Says why an invariant had no occasion on which it could be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.invariants import VarNameParam, VarTypeParam, function_of

if TYPE_CHECKING:
    from traincheck_check.judging.finding import Finding
    from traincheck_check.judging.judge import Checked


@attrs.frozen
class Reason:
    """Why an invariant was not triggered: which kind of reason, and in words."""

    kind: str
    text: str


def why_not_triggered(finding: Finding, checked: Checked) -> Reason:
    """Say why an invariant was not triggered."""
    invariant = finding.invariant
    if reason := checked.unchecked.get(invariant.id):
        return Reason("not checkable", f"it can't be checked: {reason}")
    for fault in checked.faults:
        if fault.relation == invariant.relation:
            return Reason("relation failed", f"{fault.relation} failed: {fault.error}")
    if finding.unmet:
        text = f"its precondition was met on none of its {finding.unmet} occasions"
        return Reason("precondition never met", text)
    # The first that is named gives the occasions.
    function = next(filter(None, map(function_of, invariant.params)), None)
    if function is not None and function not in checked.seen.functions:
        return _why_not_called(function, checked)
    is_about_variables = any(
        isinstance(param, VarTypeParam | VarNameParam) for param in invariant.params
    )
    if is_about_variables and "var" not in checked.seen.kinds:
        return Reason("no variable tracked", "no variable was tracked")
    return Reason("no occasion", f"there was no occasion for it{_in_recorded(checked)}")


def _why_not_called(function: str, checked: Checked) -> Reason:
    recordings = [shard.header.recording for shard in checked.trace.shards]
    for recording in recordings:
        if function in recording.not_wrapped:
            text = f"{function} could not be recorded: {recording.not_wrapped[function]}"
            return Reason("not recorded", text)
    if any(function in recording.functions for recording in recordings):
        return Reason("never called", f"{function} was never called{_in_recorded(checked)}")
    return Reason("never called, or not recorded", f"{function} was never called, or not recorded")


def _in_recorded(checked: Checked) -> str:
    """Say of a trace that leaves steps out that nothing is known of these."""
    is_sampled = any(rank.recorded < rank.steps for rank in checked.ranks)
    return " in the steps that were recorded" if is_sampled else ""
