"""The time that recording takes is counted, and kept to its share by sampling."""

import attrs
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument.recorder.overhead import Budget, Overhead

MS = 1_000_000


@attrs.define
class Program:
    """A program of even steps, under a clock of its own."""

    step_ns: int
    recorded_ns: int  # what recording adds to a step
    percent: float
    now: int = 0
    overhead: Overhead = attrs.field(factory=lambda: Overhead(lambda: 0))
    interval: int = 1

    def run(self, steps):
        """Run steps; return the intervals that held, and the share of the recording in the end."""
        budget = Budget(self.percent, self.overhead, lambda: self.now)
        intervals, recorded, shares = [], False, []
        for step in range(steps):
            self.interval = budget.interval_after(self.interval, was_recorded=recorded)
            intervals.append(self.interval)
            recorded = step % self.interval == 0
            self.pass_step(is_recorded=recorded)
            shares.append(recorded * self.recorded_ns)
        late = shares[-8 * self.interval :]
        return intervals, sum(late) / (sum(late) + len(late) * self.step_ns)

    def pass_step(self, *, is_recorded):
        self.now += self.step_ns + is_recorded * self.recorded_ns
        self.overhead.threads_ns += is_recorded * self.recorded_ns


@given(st.integers(1, 1000), st.integers(0, 1000), st.floats(0.5, 50, allow_nan=False, width=16))
def test_the_share_falls_below_the_budget_and_the_interval_no_further_than_needed(
    step, recorded, percent
):
    """Whatever recording costs, and whatever it may cost; in doublings, and never back."""
    needed = recorded * (100 - percent) / (percent * step)
    assume(needed < 60)
    program = Program(step * MS, recorded * MS, percent)
    intervals, share = program.run(2_000)

    assert share <= percent / 100 * 1.001
    assert intervals == sorted(intervals)
    assert all(interval & (interval - 1) == 0 for interval in intervals)
    assert intervals[-1] < 2 * max(needed * 1.001, 1)


def test_a_single_slow_step_raises_nothing():
    """The first steps, which cost more, are not looked at; the share is that of several steps."""
    program = Program(10 * MS, 1 * MS, percent=20)
    program.overhead.threads_ns += 900 * MS
    budget = Budget(20, program.overhead, lambda: program.now)

    intervals = []
    for step in range(12):
        intervals.append(budget.interval_after(1, was_recorded=step > 0))
        program.pass_step(is_recorded=True)
        if step == 0:
            program.now += 500 * MS
            program.overhead.threads_ns += 500 * MS

    assert set(intervals) == {1}


def test_what_no_interval_can_lower_raises_it_only_so_far():
    """Each step marks a stage, which takes more than the budget allows: half is for the rest."""
    program = Program(10 * MS, 10 * MS, percent=10)
    budget = Budget(10, program.overhead, lambda: program.now)
    interval = 1
    for step in range(2_000):
        interval = budget.interval_after(interval, was_recorded=(step - 1) % interval == 0)
        program.pass_step(is_recorded=step % interval == 0)
        program.now += 2 * MS
        program.overhead.threads_ns += 2 * MS

    assert interval == 32


@pytest.mark.torch
def test_each_rise_of_the_interval_is_said_by_a_header(record):
    """It stands before the steps for which it holds, and says what the footer cannot."""
    now = 0
    with record(budget=10.0, warm_up=2) as run:
        steps, overhead = run.recorder.steps, Overhead(lambda: 0)
        steps.budget = Budget(steps.budget.percent, overhead, lambda: now)
        for _ in range(200):
            traincheck.start_step()
            is_recording = run.recorder.clock.is_recording
            overhead.threads_ns += is_recording * 5 * MS
            now += (10 + is_recording * 5) * MS

    records = run.records()
    samplings = [one["sampling"] for one in records if one["kind"] == "header"]
    assert samplings[0] == {"interval": 1, "warm_up": 2, "budget": 10.0}
    assert samplings[-1] == {"interval": 8, "warm_up": 2, "budget": 10.0}
    (footer,) = run.records("footer")
    assert footer["settled_seconds"] > footer["settled_recording_seconds"] > 0
    interval = 1
    for one in records:
        if one["kind"] == "header":
            interval = one["sampling"]["interval"]
        elif one["kind"] == "step":
            step = one["step"]
            assert one["sampled"] == (step < 2 or (step - 2) % interval == 0)


def test_since_a_rise_of_the_interval_the_share_is_told_apart():
    """What the steps took that made it rise is not in it."""
    program = Program(10 * MS, 10 * MS, percent=10)
    budget = Budget(10, program.overhead, lambda: program.now)
    interval, recorded, told = 1, False, [budget.since_risen()]
    for step in range(64):
        interval = budget.interval_after(interval, was_recorded=recorded)
        recorded = step % interval == 0
        program.pass_step(is_recorded=recorded)
        told.append(budget.since_risen())

    seconds, recording = budget.since_risen()
    assert interval > 1
    assert told[: 3 * interval] == [None] * 3 * interval  # until it says something
    assert 0 < recording / seconds < 0.1 < program.overhead.ns / program.now


@pytest.mark.torch
def test_without_a_budget_the_interval_stays(record):
    """Whatever it takes."""
    with record(interval=2) as run:
        for _ in range(50):
            traincheck.start_step()
            functional.relu(torch.ones(1))

    assert [one["sampling"]["interval"] for one in run.records("header")] == [2]


@pytest.mark.torch
def test_evaluation_raises_the_interval_too(record):
    """A run that does nothing else has no step of training at which to decide."""
    now = 0
    with record(budget=10.0) as run:
        steps, overhead = run.recorder.steps, Overhead(lambda: 0)
        steps.budget = Budget(steps.budget.percent, overhead, lambda: now)
        for _ in range(40):
            traincheck.start_eval_step()
            is_recording = run.recorder.clock.is_recording
            overhead.threads_ns += is_recording * 5 * MS
            now += (10 + is_recording * 5) * MS

    assert run.records("header")[-1]["sampling"]["interval"] == 8


@pytest.mark.torch
def test_the_footer_says_what_recording_took(record):
    """Of calls, marks and the writer; not more than there was. The start is told apart."""
    with record() as run:
        overhead = run.recorder.overhead
        at_start = overhead.threads_ns
        functional.relu(torch.ones(1))
        of_calls = overhead.threads_ns
        traincheck.start_step()
        of_marks = overhead.threads_ns - of_calls

    (footer,) = run.records("footer")
    assert at_start == 0
    assert min(of_calls, of_marks, footer["starting_seconds"]) > 0
    assert 0 < footer["recording_seconds"] <= footer["seconds"]
