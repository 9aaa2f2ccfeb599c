"""`FunctionLeadRelation` on small traces: it holds, it is broken, it does not apply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_relations.order.function_lead import FunctionLeadRelation
from traincheck_relations.testing.protocol import (
    BACKWARD,
    CLIP,
    SCHEDULER_STEP,
    STEP,
    ZERO_GRAD,
    broken,
    call,
    examples,
    loop,
    new_rank,
    proposals,
    verdicts,
)
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_trace_schema.invariants import APIParam

RELATION = FunctionLeadRelation()
LOOP = ("zero_grad", "backward", "clip", "step", "scheduler")
NAMES = {
    "zero_grad": ZERO_GRAD,
    "backward": BACKWARD,
    "clip": CLIP,
    "step": STEP,
    "scheduler": SCHEDULER_STEP,
}


def turns(first, second):
    return APIParam(api_full_name=first), APIParam(api_full_name=second)


@pytest.fixture
def trace(tmp_path):
    return TraceBuilder(tmp_path)


@given(steps=st.integers(3, 7), wrong=st.integers(0, 5), left_out=st.sampled_from(LOOP))
def test_a_call_that_is_left_out_once_is_found_a_step_later(
    tmp_path_factory, steps, wrong, left_out
):
    """When its turn comes again; the last turn of a run is left open."""
    trace = TraceBuilder(tmp_path_factory.mktemp("run"))
    shorter = [one for one in LOOP if one != left_out]
    loop(new_rank(trace), [shorter if step == wrong else LOOP for step in range(steps)])
    before = NAMES[LOOP[LOOP.index(left_out) - 1]]  # of the first, the last of the step before

    found = verdicts(trace, RELATION, turns(before, NAMES[left_out]))

    begins_step = left_out == LOOP[0]
    late = wrong if begins_step else wrong + 1
    assert [step for step, held in found if not held] == [late] * (0 < late < steps)
    assert len(found) == steps - 1


def test_gradients_that_are_cleared_for_each_batch_of_an_accumulation_are_found(trace):
    """Between two calls of `zero_grad` there should be a step."""
    loop(new_rank(trace), [("zero_grad", "backward", "zero_grad", "backward", "step")] * 2)

    found = verdicts(trace, RELATION, turns(ZERO_GRAD, STEP))

    assert found == [(0, False), (1, True), (1, False)]


def test_an_accumulation_of_gradients_takes_turns_as_a_whole(trace):
    """Several backward passes between two steps are no breach."""
    loop(new_rank(trace), [("backward", "backward", "step", "zero_grad")] * 3)

    params = [turns(STEP, ZERO_GRAD), turns(ZERO_GRAD, STEP), turns(STEP, BACKWARD)]
    assert broken(trace, RELATION, *params) == []


def test_that_gradients_are_never_cleared_is_found_from_the_second_step_on(trace):
    """The first step needs none."""
    loop(new_rank(trace), [("backward", "step")] * 3)

    found = examples(trace, RELATION, turns(STEP, ZERO_GRAD))

    assert [(one.at.window.step, one.held) for one in found] == [(1, False), (2, False)]
    assert found[0].happened == (
        f"{STEP} was called again, but {ZERO_GRAD} was not called since its call before"
    )
    begun = [one.record["step"] for one in found[0].evidence]
    assert begun == [0, 1, 1]


def test_a_program_without_a_scheduler_breaks_nothing(trace):
    """What it lacks need not follow."""
    loop(new_rank(trace), [("backward", "step")] * 3)

    assert examples(trace, RELATION, turns(STEP, SCHEDULER_STEP)) == []


def test_each_optimizer_has_turns_of_its_own(trace):
    """What is about no object, as a module that clears gradients, counts for both."""
    body = ("module_zero_grad", "backward", "0:step", "module_zero_grad", "backward", "1:step")
    loop(new_rank(trace), [body] * 3)

    params = [turns(STEP, ZERO_GRAD), turns(ZERO_GRAD, STEP), turns(STEP, BACKWARD)]
    assert broken(trace, RELATION, *params) == []


def test_an_optimizer_that_is_not_cleared_is_found_beside_one_that_is(trace):
    """They don't stand for one another."""
    loop(new_rank(trace), [("0:zero_grad", "backward", "0:step", "1:step")] * 3)

    found = examples(trace, RELATION, turns(STEP, ZERO_GRAD))

    assert [one.held for one in found] == [True, False] * 2


def test_a_module_that_clears_gradients_has_turns_of_its_own(trace):
    """A program may let both the module and the optimizer clear them."""
    loop(new_rank(trace), [("module_zero_grad", "zero_grad", "backward", "step")] * 3)

    assert broken(trace, RELATION, turns(ZERO_GRAD, BACKWARD), turns(ZERO_GRAD, STEP)) == []


def test_what_follows_is_looked_for_in_one_thread(trace):
    """What another thread calls has no place in the order."""
    rank = new_rank(trace)
    loop(rank, [("step",)] * 2)
    call(rank, "scheduler")
    rank.records[-1]["thread"] = rank.records[-2]["thread"] = 1
    loop(rank, [("step", "scheduler")], first=2)

    assert broken(trace, RELATION, turns(STEP, SCHEDULER_STEP)) == [1, 2]


def test_the_context_is_that_of_the_call_that_should_be_followed(trace):
    """It is what was known when the occasion began."""
    loop(new_rank(trace), [("step", "zero_grad")] * 3)

    found = examples(trace, RELATION, turns(STEP, ZERO_GRAD))

    assert [one.context["run.first_step"] for one in found] == [True, False]


@pytest.mark.parametrize("reason", ["queue", "sampling"])
def test_across_a_gap_nothing_is_judged(trace, reason):
    """What followed may be missing."""
    rank = new_rank(trace)
    loop(rank, [("step",)])
    rank.gap(reason)
    loop(rank, [("step", "zero_grad"), ("step",)], first=1)

    assert verdicts(trace, RELATION, turns(STEP, ZERO_GRAD)) == [(2, True)]


def test_after_an_exception_nothing_is_judged(trace):
    """A program that goes on has left out what would have followed."""
    rank = new_rank(trace)
    rank.step(0)
    call(rank, "zero_grad")
    call(rank, "backward", raises="OutOfMemoryError")
    loop(rank, [("zero_grad", "backward", "step")], first=1)

    assert examples(trace, RELATION, turns(ZERO_GRAD, STEP), turns(ZERO_GRAD, BACKWARD)) == []


def test_what_a_call_does_inside_is_neither_before_nor_after_it(trace):
    """An optimizer that is given a closure clears the gradients inside its step."""
    inside = "step>zero_grad"
    loop(new_rank(trace), [(inside,), (inside,), ("step",)])

    assert examples(trace, RELATION, turns(STEP, ZERO_GRAD)) == []


def test_calls_of_an_evaluation_have_no_turn(trace):
    """Two backward passes in it need no step between them."""
    rank = new_rank(trace)
    loop(rank, [("backward", "step")])
    rank.stage("evaluation")
    call(rank, "backward")
    call(rank, "backward")

    assert verdicts(trace, RELATION, turns(BACKWARD, STEP)) == []


def test_a_model_goes_back_to_training_after_each_evaluation(trace):
    """`eval` calls `train` itself, which is not going back."""
    rank = new_rank(trace)
    loop(rank, [("train", "step", "eval>train"), ("train", "eval>train"), ("eval>train",)])

    found = verdicts(trace, RELATION, turns("torch.nn.Module.eval", "torch.nn.Module.train"))

    assert found == [(1, True), (2, False)]


def test_proposed_is_that_what_an_update_consists_of_takes_turns(trace):
    """How many gradients a program adds up is its own affair, and how often it evaluates."""
    loop(new_rank(trace), [("zero_grad", "backward", "clip", "scheduler"), ("eval", "train")])

    assert proposals(trace, RELATION) == {
        turns(ZERO_GRAD, BACKWARD),
    }


def test_an_api_with_arguments_is_refused():
    """It is about every call."""
    with pytest.raises(TypeError, match="any call"):
        RELATION.monitor(
            [(APIParam(api_full_name="a", exception="ValueError"), *turns("b", "c")[:1])]
        )
