"""Says why an invariant had no occasion on which it could be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_trace_schema.invariants import VarNameParam, VarTypeParam, function_of

if TYPE_CHECKING:
    from traincheck_check.checking import Checked
    from traincheck_check.finding import Finding


def why_not_triggered(finding: Finding, checked: Checked) -> str:
    """Say in words why an invariant was not triggered."""
    invariant = finding.invariant
    if reason := checked.unchecked.get(invariant.id):
        return f"it can't be checked: {reason}"
    for fault in checked.faults:
        if fault.relation == invariant.relation:
            return f"{fault.relation} failed: {fault.error}"
    if finding.unmet:
        return f"its precondition was met on none of its {finding.unmet} occasions"
    # The first that is named gives the occasions.
    function = next(filter(None, map(function_of, invariant.params)), None)
    if function is not None and function not in checked.seen.functions:
        return _why_not_called(function, checked)
    is_about_variables = any(
        isinstance(param, VarTypeParam | VarNameParam) for param in invariant.params
    )
    if is_about_variables and "var" not in checked.seen.kinds:
        return "no variable was tracked"
    return "there was no occasion for it"


def _why_not_called(function: str, checked: Checked) -> str:
    recordings = [shard.header.recording for shard in checked.run.shards]
    for recording in recordings:
        if function in recording.not_wrapped:
            return f"{function} could not be recorded: {recording.not_wrapped[function]}"
    if any(function in recording.functions for recording in recordings):
        return f"{function} was never called"
    return f"{function} was never called, or not recorded"
