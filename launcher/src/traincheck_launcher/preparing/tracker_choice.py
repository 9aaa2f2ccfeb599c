"""Which tracker follows the models, and what it does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_instrument.trackers.limits import unseen_by

if TYPE_CHECKING:
    from traincheck_instrument.settings import Tracker
    from traincheck_launcher.preparing.selection import Selection
    from traincheck_trace_schema.plan import Plan


def tracker_for(plan: Plan | None) -> Tracker | None:
    """Return the tracker that suits a plan, where the user names none; None: no variables.

    Of those that see all that is asked for it is the one that costs least. All that will be learnt
    from a full recording is not known yet.
    """
    if plan is None:
        return "subclass"
    if not plan.variables:
        return None
    return "subclass" if unseen_by("sampler", plan) else "sampler"


def what_is_unseen(tracker: Tracker, selection: Selection | None) -> str:
    """Say in a line what a tracker does not see of what is asked for; empty if it sees all."""
    if selection is None:
        return "; ".join(
            f"{what}: not seen, {why}" for what, why in unseen_by(tracker, None).items()
        )
    reasons = [
        next(iter(unseen.values()))
        for plan in selection.of_each
        if (unseen := unseen_by(tracker, plan))
    ]
    if not reasons:
        return ""
    return f"{_which(len(reasons), len(selection.of_each))} be judged with it: {reasons[0]}"


def _which(count: int, total: int) -> str:
    if total == 1:
        return "the invariant can't"
    if count == total:
        return f"none of the {total:,} invariants can"
    return f"{count:,} of the {total:,} invariants can't"
