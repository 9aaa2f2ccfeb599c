"""`FunctionCoverRelation` on small traces: it holds, it is broken, it does not apply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_relations.order.function_cover import WITHIN_STEP, FunctionCoverRelation
from traincheck_relations.testing.protocol import (
    BACKWARD,
    CLIP,
    SCHEDULER_STEP,
    STEP,
    UNSCALE,
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
from traincheck_trace_schema.invariants import APIParam, ValueParam

RELATION = FunctionCoverRelation()
LOOP = ("zero_grad", "forward", "backward", "clip", "step", "scheduler")


def in_step(first, second):
    return *since_last(first, second), WITHIN_STEP


def since_last(first, second):
    return APIParam(api_full_name=first), APIParam(api_full_name=second)


@pytest.fixture
def trace(tmp_path):
    return TraceBuilder(tmp_path)


@given(
    steps=st.integers(2, 6),
    wrong=st.integers(0, 5),
    pair=st.sampled_from([("backward", "clip"), ("clip", "step"), ("zero_grad", "backward")]),
)
def test_two_calls_that_change_places_are_found_in_their_step(tmp_path_factory, steps, wrong, pair):
    """In each other step the order holds."""
    first, second = (LOOP.index(one) for one in pair)
    swapped = list(LOOP)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    trace = TraceBuilder(tmp_path_factory.mktemp("run"))
    loop(new_rank(trace), [swapped if step == wrong else LOOP for step in range(steps)])
    names = {"zero_grad": ZERO_GRAD, "backward": BACKWARD, "clip": CLIP, "step": STEP}
    params = in_step(*(names[one] for one in pair))

    assert verdicts(trace, RELATION, params) == [(step, step != wrong) for step in range(steps)]


def test_clipping_after_the_step_is_found_from_the_first_step_on(trace):
    """The two take turns all the same: only where a step begins tells which is first."""
    loop(new_rank(trace), [("zero_grad", "backward", "step", "clip")] * 3)

    found = examples(trace, RELATION, in_step(CLIP, STEP))

    assert [(one.at.window.step, one.held) for one in found] == [(0, False), (1, False), (2, False)]
    assert (
        found[0].happened == f"{STEP} was called, but {CLIP} was not called before it in this step"
    )


def test_clipping_before_unscaling_is_found(trace):
    """The scaler unscales by itself, but too late."""
    body = ("backward", "clip", "scaler_step>unscale")
    loop(new_rank(trace), [body] * 2)

    assert broken(trace, RELATION, in_step(UNSCALE, CLIP)) == [0, 1]


def test_a_scheduler_without_an_optimizer_step_is_found(trace):
    """It steps for each batch of an accumulation, and the optimizer after the last one."""
    rank = new_rank(trace)
    loop(rank, [("backward", "scheduler", "backward", "step", "scheduler")] * 2)

    found = verdicts(trace, RELATION, since_last(STEP, SCHEDULER_STEP))

    assert found == [(0, False), (0, True), (1, False), (1, True)]


def test_each_optimizer_has_a_sequence_of_its_own(trace):
    """A step of one optimizer is not preceded by clearing the gradients of the other."""
    body = ("0:zero_grad", "backward", "0:step", "backward", "1:step")
    loop(new_rank(trace), [body] * 2)

    found = examples(trace, RELATION, in_step(ZERO_GRAD, STEP))

    assert [one.held for one in found] == [True, False, True, False]


def test_what_is_about_no_object_counts_for_each(trace):
    """A backward pass, or a module that clears gradients, does not name an optimizer."""
    body = ("module_zero_grad", "backward", "0:step", "1:step")
    loop(new_rank(trace), [body] * 2)

    assert broken(trace, RELATION, in_step(ZERO_GRAD, STEP), in_step(BACKWARD, STEP)) == []


def test_since_the_call_before_the_first_call_counts_too(trace):
    """As TrainCheck 0.x claims it; where gradients are cleared last, the first has none before."""
    loop(new_rank(trace), [("backward", "step", "zero_grad")] * 3)

    assert verdicts(trace, RELATION, since_last(ZERO_GRAD, BACKWARD)) == [
        (0, False),
        (1, True),
        (2, True),
    ]


def test_before_the_first_step_there_is_no_occasion(trace):
    """A scheduler steps when it is made."""
    rank = new_rank(trace)
    call(rank, "scheduler")
    loop(rank, [("step", "scheduler")] * 2)

    assert verdicts(trace, RELATION, in_step(STEP, SCHEDULER_STEP)) == [(0, True), (1, True)]


def test_what_0_x_claims_is_judged_wherever_in_a_run(trace):
    """Its traces may have no steps at all, and what was never called is missing."""
    rank = new_rank(trace)
    call(rank, "train")
    rank.stage("evaluation")
    call(rank, "train")

    found = verdicts(trace, RELATION, since_last("library.freeze_stages", "torch.nn.Module.train"))

    assert found == [(-1, False), (-1, False)]


def test_a_program_that_never_clips_breaks_no_order_of_clipping(trace):
    """What it lacks it need not call first."""
    loop(new_rank(trace), [("zero_grad", "backward", "step")] * 3)

    assert examples(trace, RELATION, in_step(CLIP, STEP)) == []


def test_that_gradients_are_never_cleared_is_found(trace):
    """No training does without."""
    loop(new_rank(trace), [("backward", "step")] * 3)

    assert broken(trace, RELATION, in_step(ZERO_GRAD, STEP)) == [0, 1, 2]


def test_steps_before_a_function_is_first_called_count_once_it_is(trace):
    """That a program clips is known from its second step on."""
    loop(new_rank(trace), [("backward", "step"), ("backward", "clip", "step")])

    found = verdicts(trace, RELATION, in_step(CLIP, STEP))

    assert sorted(found) == [(0, False), (1, True)]


def test_what_a_call_does_by_itself_need_not_come_before_it(trace):
    """An optimizer that is given a closure computes the gradients inside its step."""
    loop(new_rank(trace), [("step>backward",)] * 3)

    assert broken(trace, RELATION, since_last(BACKWARD, STEP), in_step(BACKWARD, STEP)) == []


def test_a_scaler_steps_for_its_optimizer(trace):
    """Whether it leaves the optimizer out or not, its call is the step, once."""
    loop(
        new_rank(trace),
        [("backward", "clip", "scaler_step>step"), ("backward", "clip", "scaler_step")],
    )

    assert verdicts(trace, RELATION, in_step(CLIP, STEP)) == [(0, True), (1, True)]


@pytest.mark.parametrize("reason", ["queue", "sampling"])
def test_records_that_are_missing_in_a_step_leave_the_rest_of_it_open(trace, reason):
    """What is not recorded may have been called; what was seen before counts."""
    rank = new_rank(trace)
    loop(rank, [("backward", "step"), ("step",)])
    rank.gap(reason)
    call(rank, "step")
    loop(rank, [("backward", "step")], first=2)

    assert verdicts(trace, RELATION, in_step(BACKWARD, STEP)) == [(0, True), (1, False), (2, True)]


def test_a_step_that_is_recorded_after_a_pause_is_judged(trace):
    """What sampling left out lies before it."""
    rank = new_rank(trace)
    loop(rank, [("backward", "step")])
    rank.step(5)
    rank.gap("sampling")
    call(rank, "step")

    assert verdicts(trace, RELATION, in_step(BACKWARD, STEP)) == [(0, True), (5, False)]
    assert verdicts(trace, RELATION, since_last(BACKWARD, STEP)) == [(0, True)]


def test_an_evaluation_is_no_part_of_the_step(trace):
    """Gradients that an evaluation computes say nothing about training."""
    rank = new_rank(trace)
    loop(rank, [("zero_grad", "backward", "step")])
    rank.stage("evaluation")
    call(rank, "step", "optimizer7")
    rank.stage("init")

    assert verdicts(trace, RELATION, in_step(ZERO_GRAD, STEP)) == [(0, True)]


def test_how_many_ranks_there_are_is_no_condition(trace):
    """An order does not depend on it."""
    loop(new_rank(trace), [("backward", "step")])

    (example,) = examples(trace, RELATION, in_step(BACKWARD, STEP))

    assert set(example.context) == {"run.stage", "run.first_step", "run.first_micro_step"}


def test_a_step_in_which_a_call_raised_is_left_open(trace):
    """The program may have left out the rest of it."""
    rank = new_rank(trace)
    loop(rank, [("zero_grad", "backward", "step")])
    rank.step(1)
    call(rank, "zero_grad")
    call(rank, "backward", raises="RuntimeError")
    call(rank, "step")

    assert verdicts(trace, RELATION, in_step(BACKWARD, STEP)) == [(0, True)]


def test_a_run_that_breaks_off_in_a_call_gives_no_example_of_it(trace):
    """It did not end."""
    rank = new_rank(trace)
    rank.step(0)
    with rank.call("torch.optim.SGD.step"):
        trace.write(complete=False)

        assert examples_so_far(trace) == []


def examples_so_far(trace):
    return examples(trace, RELATION, in_step(BACKWARD, STEP), complete=False)


def test_proposed_are_rules_between_siblings_in_the_order_seen(trace):
    """Not for layers, not for what another call makes, and not where no order is a rule.

    Nor for clearing gradients, which a loop may do at its begin or at its end.
    """
    rank = new_rank(trace)
    call(rank, "scheduler")
    call(rank, "step")
    loop(rank, [("zero_grad", "forward", "backward", "scaler_step>unscale", "scheduler")] * 2)
    loop(rank, [("eval", "train")], first=2)

    assert proposals(trace, RELATION) == {
        in_step(BACKWARD, STEP),
        in_step(STEP, SCHEDULER_STEP),
    }


@pytest.mark.parametrize(
    "scope",
    [
        (ValueParam(name="within", value="epoch"),),
        (APIParam(api_full_name="c"),),
        (WITHIN_STEP,) * 2,
    ],
)
def test_params_that_it_does_not_understand_are_refused(scope):
    """They say so when a file is read, not in the middle of a run."""
    with pytest.raises(TypeError, match="after two APIParams"):
        RELATION.requires((*since_last("a", "b"), *scope))


def test_only_what_stands_for_a_function_is_asked_for_beside_it():
    """A scaler tells by an argument whose step it makes."""
    needs = RELATION.requires(in_step(CLIP, STEP))

    assert needs.functions == {
        CLIP: frozenset(),
        STEP: frozenset(),
        "torch.GradScaler.step": frozenset(("optimizer",)),
    }
