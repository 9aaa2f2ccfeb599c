"""`CallCountRelation` on small traces: it holds, it is broken, it does not apply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_relations.order.call_count import CallCountRelation
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
from traincheck_trace_schema.invariants import APIParam, ValueParam

RELATION = CallCountRelation()
LOOP = ("zero_grad", "forward", "backward", "step")


def exactly(function, number):
    return APIParam(api_full_name=function), ValueParam(name="exactly", value=number)


def at_least(function, number=1):
    return APIParam(api_full_name=function), ValueParam(name="at_least", value=number)


def ever(function, model="0123456789abcdef"):
    params = APIParam(api_full_name=function), ValueParam(name="ever", value=1)
    return *params, ValueParam(name="parameters", value=model)


def as_often(function, other):
    return APIParam(api_full_name=function), APIParam(api_full_name=other)


@pytest.fixture
def trace(tmp_path):
    return TraceBuilder(tmp_path)


@given(numbers=st.lists(st.integers(0, 3), min_size=2, max_size=6), number=st.integers(1, 3))
def test_each_step_but_the_last_is_judged_by_its_number(tmp_path_factory, numbers, number):
    """Where the last one would have ended nobody knows; nor if it is a habit to call it."""
    trace = TraceBuilder(tmp_path_factory.mktemp("run"))
    loop(new_rank(trace), [("backward", *["clip"] * each, "step") for each in numbers])
    params = exactly(CLIP, number), at_least(CLIP, number), as_often(CLIP, BACKWARD)

    found = [(one.param, one.held) for one in examples(trace, RELATION, *params)]

    expected = [
        (param, held)
        for at, each in enumerate(numbers[:-1])
        if each or (at > 1 and all(numbers[at - 2 : at]))
        for param, held in enumerate((each == number, each >= number, each == 1))
    ]
    assert found == expected


def test_gradients_that_are_cleared_too_often_are_found(trace):
    """In the first step already."""
    loop(new_rank(trace), [("zero_grad", "backward", "zero_grad", "backward", "step")] * 2)

    (found,) = examples(trace, RELATION, exactly(ZERO_GRAD, 1))

    assert (found.held, found.at.window.step, found.at.function) == (False, 0, ZERO_GRAD)
    assert found.happened == f"{ZERO_GRAD} of optimizer0 was called twice in this step"
    assert [one.record["kind"] for one in found.evidence] == ["step", "step"]


def test_that_a_function_is_not_called_any_more_is_found(trace):
    """Of what no training does without also where it was never seen."""
    loop(
        new_rank(trace),
        [*[("backward", "step", "scheduler")] * 2, ("backward", "step"), LOOP],
    )

    found = examples(trace, RELATION, at_least(ZERO_GRAD), exactly(SCHEDULER_STEP, 1))

    told = [(one.at.window.step, one.param, one.held) for one in found]
    assert told == [(0, 1, True), (1, 0, False), (1, 1, True), (2, 0, False), (2, 1, False)]
    assert found[-1].happened == f"{SCHEDULER_STEP} was not called in this step"


def test_a_scheduler_that_steps_once_in_an_epoch_is_no_breach(trace):
    """It is asked in the steps in which it steps: twice there is one time too often."""
    plain, last = ("backward", "step"), ("backward", "step", "scheduler")
    twice = (*last, "scheduler")
    loop(new_rank(trace), [plain, last, plain, last, plain, twice, plain, plain])

    assert verdicts(trace, RELATION, exactly(SCHEDULER_STEP, 1), at_least(SCHEDULER_STEP)) == [
        *[(1, True)] * 2,
        *[(3, True)] * 2,
        (5, False),
        (5, True),
    ]


def test_how_often_each_of_two_optimizers_steps_is_the_programs_own_affair(trace):
    """A critic learns three times while a generator does once, or in steps of its own."""
    both = ("backward", "0:step", "1:step")
    critic = ("backward", "1:step", "backward", "1:step")
    loop(new_rank(trace), [both, critic, (*critic, "0:step"), both])

    found = examples(trace, RELATION, exactly(STEP, 1), at_least(STEP, 3))

    assert [(one.param, one.held) for one in found] == [(1, False), (1, False), (1, True)]


def test_an_optimizer_that_another_takes_over_from_may_be_gone(trace):
    """A new one for the next phase is no breach."""
    first, second = ("backward", "0:step"), ("backward", "1:step")
    loop(new_rank(trace), [first, first, second, second, second])

    assert broken(trace, RELATION, exactly(STEP, 1)) == []


def test_the_first_step_that_a_scheduler_makes_while_it_is_made_is_none(trace):
    """As where layers are unfrozen, and a new scheduler takes over."""
    rank = new_rank(trace)
    loop(rank, [(*LOOP, "scheduler")] * 3)
    rank.step(3)
    with rank.call("torch.optim.lr_scheduler.StepLR.__init__"):
        call(rank, "scheduler")
    for what in (*LOOP, "scheduler"):
        call(rank, what)
    rank.step(4)

    claim = exactly(SCHEDULER_STEP, 1)

    assert verdicts(trace, RELATION, claim) == [(step, True) for step in range(4)]
    needed = RELATION.requires(claim).functions
    assert "torch.optim.lr_scheduler.LRScheduler.__init__" in needed


def test_a_step_without_training_says_nothing(trace):
    """A batch that is left out needs no step."""
    loop(new_rank(trace), [LOOP, ("forward",), ("zero_grad",), LOOP, LOOP])

    found = verdicts(trace, RELATION, exactly(STEP, 1), at_least(STEP), exactly(ZERO_GRAD, 1))

    assert found == [*[(0, True)] * 3, *[(3, True)] * 3]


def test_a_step_of_the_optimizer_that_is_left_out_is_found(trace):
    """Gradients were computed for it."""
    loop(new_rank(trace), [LOOP, LOOP[:-1], LOOP])

    assert broken(trace, RELATION, exactly(STEP, 1)) == [1]


def test_calls_of_an_evaluation_are_not_counted(trace):
    """It computes gradients for reasons of its own."""
    rank = new_rank(trace)
    loop(rank, [LOOP])
    rank.stage("evaluation")
    rank.eval_step(0)
    call(rank, "backward")
    rank.stage("init")
    loop(rank, [LOOP], first=1)

    assert verdicts(trace, RELATION, exactly(BACKWARD, 1)) == [(0, True)]


@pytest.mark.parametrize("reason", ["queue", "sampling"])
def test_a_step_with_a_gap_says_nothing(trace, reason):
    """The calls may be missing."""
    rank = new_rank(trace)
    loop(rank, [("backward",)])
    rank.gap(reason)
    loop(rank, [LOOP, LOOP], first=1)

    assert verdicts(trace, RELATION, exactly(STEP, 1)) == [(1, True)]


def test_a_step_that_is_recorded_after_a_pause_is_judged(trace):
    """A step that sampling left out is not."""
    rank = new_rank(trace)
    loop(rank, [LOOP])
    rank.step(1)
    rank.records[-1]["sampled"] = False
    call(rank, "backward")  # as in an evaluation, from which on calls are recorded again
    rank.step(5)
    rank.gap("sampling")
    call(rank, "backward")
    loop(rank, [LOOP], first=6)

    assert verdicts(trace, RELATION, exactly(STEP, 1)) == [(0, True), (5, False)]


def test_a_step_in_which_a_call_raised_says_nothing(trace):
    """The program may have left out the rest of it."""
    rank = new_rank(trace)
    rank.step(0)
    call(rank, "backward", raises="OutOfMemoryError")
    loop(rank, [LOOP, LOOP], first=1)

    assert verdicts(trace, RELATION, exactly(STEP, 1)) == [(1, True)]


def test_what_stands_for_a_function_is_counted_once(trace):
    """A scaler that calls the optimizer makes one step; one that leaves it out makes one, too."""
    body = ("module_zero_grad", "backward", "scaler_step")
    loop(new_rank(trace), [(*body[:2], "scaler_step>step"), body, body])

    assert broken(trace, RELATION, exactly(STEP, 1), exactly(ZERO_GRAD, 1)) == []


def test_an_exact_number_is_proposed_only_where_it_is_a_rule(trace):
    """How often a critic learns while a generator does once is up to the program."""
    rank = new_rank(trace)
    loop(rank, [("clip", "clip", "backward", "backward", "0:step", "1:step", "1:step")] * 3)

    assert proposals(trace, RELATION) == {at_least(CLIP), at_least(BACKWARD), at_least(STEP)}


def test_that_two_numbers_are_equal_is_proposed_where_they_vary(trace):
    """As where a step may have several batches."""
    body = ("zero_grad", "backward", "step")
    loop(new_rank(trace), [body, body * 2, body * 3, body])

    assert as_often(BACKWARD, STEP) in proposals(trace, RELATION)


def test_that_two_numbers_are_equal_is_not_proposed_where_they_are_always_the_same(trace):
    """That each is called once says so; of what takes turns with the step, its turns do."""
    loop(new_rank(trace), [LOOP] * 4)

    assert proposals(trace, RELATION) == {
        at_least(ZERO_GRAD),
        at_least(BACKWARD),
        at_least(STEP),
        exactly(STEP, 1),
    }


def test_equal_numbers_are_proposed_for_what_is_not_called_in_every_step(trace):
    """A scheduler that steps twice or not at all, as the optimizer does, keeps to it."""
    once, twice = ("backward", "step", "scheduler"), ("backward", *["step", "scheduler"] * 2)
    loop(new_rank(trace), [once, twice, ("clip", *once), once])

    found = {one for one in proposals(trace, RELATION) if isinstance(one[1], APIParam)}
    assert found == {as_often(STEP, SCHEDULER_STEP)}


@pytest.mark.parametrize("value", [0, True, "1"])
def test_numbers_that_say_nothing_are_refused(value):
    """When a file is read, not in the middle of a run."""
    with pytest.raises(TypeError, match="at least 1"):
        RELATION.requires((APIParam(api_full_name="a"), ValueParam(name="exactly", value=value)))


def test_whether_there_was_training_is_asked_for():
    """A plan for a claim about clipping records what its monitor looks at."""
    assert RELATION.requires(exactly(CLIP, 1)).functions.keys() >= {CLIP, BACKWARD, STEP}


def test_how_often_an_average_follows_is_no_rule(trace):
    """Nor that it does so in each step; it may begin late, or follow every tenth step."""
    rank = new_rank(trace)
    for step in range(6):
        loop(rank, [LOOP], first=step)
        with rank.call("torch.optim.swa_utils.AveragedModel.update_parameters"):
            pass

    named = {param.api_full_name for claim in proposals(trace, RELATION) for param in claim[:1]}

    assert STEP in named
    assert not any(name.endswith("update_parameters") for name in named)


def test_what_is_never_called_in_two_steps_in_a_row_has_no_number(trace):
    """A scheduler that steps once in an epoch: how long an epoch is changes with the batch size."""
    plain, last = ("backward", "step"), ("backward", "step", "scheduler")
    loop(new_rank(trace), [plain, last, plain, last, plain, plain])

    claims = proposals(trace, RELATION)

    assert at_least(STEP) in claims
    assert not {at_least(SCHEDULER_STEP), exactly(SCHEDULER_STEP, 1)} & claims


def run_of_model(trace, *bodies):
    """Train a model with a parameter; return what is proposed of calls that are made at all."""
    rank = new_rank(trace)
    rank.variable("model.weight", requires_grad=True)
    loop(rank, bodies)
    return [one for one in sorted(proposals(trace, RELATION), key=repr) if len(one) > 2]


def test_that_a_function_is_called_at_all_is_claimed_of_the_model(trace):
    """Of what each step calls, and not all training does."""
    (claim,) = run_of_model(trace, (*LOOP, "clip"), (*LOOP, "clip", "scheduler"), LOOP)

    assert claim[:2] == ever(CLIP)[:2]
    assert RELATION.describe(claim) == (
        f"In each training step {CLIP} is called, or was in a step before it"
    )


@given(first=st.integers(0, 5), steps=st.integers(2, 6))
def test_a_function_that_is_not_called_is_told_until_it_is(tmp_path_factory, first, steps):
    """From the first step on; whether it is called again is the affair of other claims."""
    good, trace = (TraceBuilder(tmp_path_factory.mktemp("run")) for _ in range(2))
    (claim,) = run_of_model(good, (*LOOP, "clip"), LOOP)
    run_of_model(trace, *((*LOOP, "clip") if step == first else LOOP for step in range(steps)))

    assert broken(trace, RELATION, claim) == list(range(min(first, steps - 1)))
    assert broken(trace, RELATION, ever(CLIP)) == []  # of another model


def test_a_call_that_may_be_among_lost_records_is_not_missed(tmp_path):
    """What sampling left out is no loss: the steps before and after are whole."""
    good, lossy = (TraceBuilder(tmp_path / name) for name in ("good", "lossy"))
    (claim,) = run_of_model(good, (*LOOP, "clip"), LOOP)
    rank = new_rank(lossy)
    rank.variable("model.weight", requires_grad=True)
    loop(rank, [LOOP] * 2)
    rank.gap("truncated")
    loop(rank, [LOOP] * 3, first=2)

    assert set(broken(lossy, RELATION, claim)) <= {0, 1}
