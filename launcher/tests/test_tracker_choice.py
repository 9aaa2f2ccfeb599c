"""Which tracker is taken where the user names none."""

from __future__ import annotations

import pytest

from traincheck_launcher.preparing.selection import Selection
from traincheck_launcher.preparing.tracker_choice import tracker_for, what_is_unseen
from traincheck_trace_schema.plan import Plan, VariablePlan

VARIABLES = (VariablePlan(role="parameter", attributes=("data",)),)
STEP = "torch.optim.Optimizer.step"


def plan_of(variables=VARIABLES, observe=(), observe_after=()):
    """Return a plan that says how variables are looked at."""
    looks = {"observe": observe, "observe_after": observe_after}
    return Plan(id="p", functions=(), variables=variables, **looks)


@pytest.mark.parametrize(
    ("variables", "observe", "observe_after", "tracker"),
    [
        ((), (), (), None),
        (VARIABLES, (), (), "sampler"),
        (VARIABLES, (), (STEP,), "sampler"),
        (VARIABLES, (), (STEP, "torch.Tensor.backward"), "sampler"),
        (VARIABLES, (STEP,), (), "subclass"),
    ],
)
def test_a_plan_gets_the_tracker_that_costs_least(variables, observe, observe_after, tracker):
    """None without variables; the sampler if variables are only compared."""
    plan = plan_of(variables, observe, observe_after)

    assert tracker_for(plan) == tracker


def test_a_tracker_that_is_named_is_told_with_what_it_does_not_see():
    """In a line, by the number of invariants; nothing is said of one that sees all."""
    around, after, calls = plan_of(observe=(STEP,)), plan_of(observe_after=(STEP,)), plan_of(())
    why = "be judged with it: the sampler tracker looks when an optimizer has "

    def told(*plans, tracker="sampler"):
        return what_is_unseen(tracker, Selection(around, plans))

    assert told(around, around).startswith(f"none of the 2 invariants can {why}")
    assert told(around, after, calls).startswith(f"1 of the 3 invariants can't {why}")
    assert told(after, calls) == ""
    assert told(around, tracker="subclass") == ""
    assert what_is_unseen("sampler", None).startswith("gradients and requires_grad ")


def test_full_collection_looks_at_once():
    """What will be learnt from it is not known yet."""
    assert tracker_for(None) == "subclass"
