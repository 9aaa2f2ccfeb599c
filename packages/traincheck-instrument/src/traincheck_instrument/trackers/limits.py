"""What a tracker cannot see of what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincheck_instrument.settings import Tracker
    from traincheck_trace_schema.plan import Plan


def unseen_by(tracker: Tracker | None, plan: Plan | None) -> dict[str, str]:
    """Return what a tracker does not see, and why, in words for people.

    Args:
        tracker: The tracker, or None for none.
        plan: What is to be recorded; None: everything.
    """
    wants_variables = plan is None or bool(plan.variables)
    if not wants_variables or tracker in ("subclass", "proxy"):
        return {}
    if tracker is None:
        return {"variables": "no tracker is chosen"}
    why = (
        "the sampler tracker looks when an optimizer has stepped and when a step ends, and does "
        "not see what a call changes"
    )
    if plan is None or plan.functions is None:
        return {"gradients and requires_grad between optimizer steps": why}
    return {f"changes made by {name}": why for name in sorted(plan.observe)}
