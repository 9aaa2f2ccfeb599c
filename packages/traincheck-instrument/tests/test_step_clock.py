from hypothesis import given
from hypothesis import strategies as st

from traincheck_instrument.steps.step_clock import StepClock


def sampled_steps(clock, count):
    steps = []
    for _ in range(count):
        clock.advance()
        if clock.is_recording:
            steps.append(clock.step)
    return steps


def test_warm_up_and_interval_choose_the_steps():
    """Warm-up 10 and interval 10 record steps 0 to 9, then 10, 20, 30."""
    clock = StepClock(interval=10, warm_up=10)

    assert sampled_steps(clock, 35) == [*range(10), 10, 20, 30]


def test_every_step_is_recorded_by_default():
    """Without a policy no step is left out."""
    assert sampled_steps(StepClock(), 5) == [0, 1, 2, 3, 4]


def test_accumulation_makes_no_step_until_an_optimizer_has_stepped():
    """A pass through the body without an optimizer step before it is a micro-step."""
    clock = StepClock()
    seen = []
    for batch in range(6):
        if clock.begins_step(accumulating=True):
            clock.advance()
        else:
            clock.accumulate()
        seen.append((clock.step, clock.micro_step))
        clock.has_stepped = batch % 2 == 1

    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_step_that_was_left_out_stays_out_after_an_evaluation():
    """Evaluation is recorded; going back to training does not switch the step on."""
    clock = StepClock(interval=2)
    clock.enter_stage("training")
    clock.advance()
    clock.advance()
    assert not clock.is_recording

    clock.enter_stage("evaluation")
    was_on = clock.is_recording
    clock.enter_stage("training")

    assert was_on
    assert not clock.is_recording


def test_evaluation_passes_and_steps_are_counted():
    """A pass begins with its first step; its steps count from 0."""
    clock = StepClock()
    clock.advance()
    seen = []
    for _ in range(2):
        for _ in range(2):
            clock.advance_eval()
            seen.append((clock.eval_pass, clock.eval_step))
        clock.leave_evaluation()

    assert seen == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert clock.fields == {"step": 0, "eval_pass": 2}


def test_the_policy_counts_the_steps_of_all_passes():
    """A warm-up is not repeated in each pass."""
    clock = StepClock(interval=4, warm_up=2)
    clock.advance()
    recorded = []
    for _ in range(3):
        for _ in range(3):
            clock.advance_eval()
            recorded.append(clock.is_recording)
        clock.leave_evaluation()

    assert [at for at, one in enumerate(recorded) if one] == [0, 1, 2, 6]


def test_what_the_policy_leaves_out_of_evaluation_ends_with_it():
    """The training step goes on as it was, also where no stage changes."""
    clock = StepClock(interval=2)
    clock.enter_stage("training")
    clock.advance()
    clock.advance_eval()
    clock.advance_eval()
    was_recording = clock.is_recording
    clock.leave_evaluation()
    clock.go_on()

    assert (was_recording, clock.is_recording) == (False, True)


@given(st.lists(st.sampled_from(["step", "micro", "eval", "leave"]), max_size=40))
def test_windows_never_go_backwards(moves):
    """Whatever a program does, the place of a later record is not before that of an earlier."""
    from traincheck_trace_schema.window import window_of  # noqa: PLC0415

    clock = StepClock()
    before = window_of(clock.fields)
    for move in moves:
        {
            "step": clock.advance,
            "micro": clock.accumulate,
            "eval": clock.advance_eval,
            "leave": clock.leave_evaluation,
        }[move]()
        now = window_of(clock.fields)
        assert now >= before
        before = now
