"""Steps and stages: what the marks in a program do to the recording."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from traincheck_instrument.recorder.journal import Journal
from traincheck_instrument.recorder.overhead import Budget
from traincheck_instrument.recorder.work import Work
from traincheck_instrument.steps.step_clock import StepClock
from traincheck_instrument.trackers.tracker import Tracker
from traincheck_instrument.variables.looking import Looking
from traincheck_instrument.variables.observer import Observer


@attrs.define(eq=False)
class Steps:
    """Moves the clock, and records where the run stands now. Contains its own faults."""

    clock: StepClock
    _journal: Journal
    _observer: Observer
    _looking: Looking
    _work: Work
    _tracker: Tracker
    before_step: Callable[[], None] = lambda: None  # as cheap as a step may be short
    tell_header: Callable[[], None] = lambda: None
    budget: Budget | None = None
    gate: Callable[[int, int], None] | None = None  # step, micro-step: a run that is checked waits
    is_due: bool = False  # the end of a pause, or of a loss, is to be told before the next record
    _is_awake: bool = True
    _has_lost: bool = False

    def start_step(self, *, accumulating: bool = False) -> None:
        """Begin a pass through the body of the training loop.

        Raises:
            StoppedByCheck: the run is checked while it goes on, and is to end here.
        """
        before = self.clock.place
        self._work.take("the begin of a step", lambda: self._start(accumulating=accumulating))
        if self.gate is not None and self.clock.place is not before:
            self.gate(self.clock.step, self.clock.micro_step)

    def end(self) -> None:
        """End the last step, at the end of the run; what the program has let go is not missed."""
        if self.clock.step >= 0 and self._observer.variables.are_whole:
            self.clock.leave_evaluation()
            self._work.take("the end of the last step", self._end)

    def start_eval_step(self) -> None:
        """Begin a pass through the body of an evaluation loop."""
        self._work.take("the begin of an evaluation step", self._start_eval)

    def enter_stage(self, stage: str) -> None:
        """Enter a stage of the run."""
        self._work.take("the begin of a stage", lambda: self._enter(stage))

    def leave_evaluation(self, stage: str) -> None:
        """End a pass of evaluation and go back to the stage before it."""
        self._work.take("the end of an evaluation", lambda: self._leave_evaluation(stage))

    def _start(self, *, accumulating: bool) -> None:
        self.prepare()
        if not self.clock.begins_step(accumulating=accumulating):
            self._end_before(is_recorded=self.clock.records_in("training"))
            self.clock.leave_evaluation()
            self._tell_stage("training")
            self.clock.accumulate()
            self._follow_clock()
            return
        self.clock.leave_evaluation()
        self._end()
        self._tell_stage("training")
        if self.clock.step + 1 >= self.clock.warm_up:
            self._keep_budget()
        self.clock.advance()
        self._tell_step()
        self._go_on()
        self._journal.flush()

    def _start_eval(self) -> None:
        self.prepare()
        if self.clock.eval_steps >= self.clock.warm_up:
            self._keep_budget()
        self._end_before(is_recorded=self.clock.records_next_eval())
        self.clock.advance_eval()
        self._tell_step()
        self._go_on()
        self._look_at_modes()

    def prepare(self) -> None:
        """Do what comes before a step, and before a model is tracked."""
        with self._work.contained("the ranks of the job"):
            self.before_step()

    def _enter(self, stage: str) -> None:
        if stage != self.clock.stage:
            self._end_before(is_recorded=self.clock.records_in(stage))
        self._tell_stage(stage)
        self._follow_clock()

    def _leave_evaluation(self, stage: str) -> None:
        self._end_before(is_recorded=self.clock.records_in(stage))
        self.clock.leave_evaluation()
        self.clock.go_on()  # what the policy left out of evaluation ends with it
        self._enter(stage)

    def _keep_budget(self) -> None:
        """Raise the sampling interval if recording has taken more than its share of the time."""
        clock = self.clock
        if self.budget is None:
            return
        interval = self.budget.interval_after(clock.interval, was_recorded=clock.is_sampled)
        if interval != clock.interval:
            clock.interval = interval
            self.tell_header()

    def _end_before(self, *, is_recorded: bool) -> None:
        """Look at what is recorded to here if what comes is not: later it would not be seen."""
        if not is_recorded:
            self._end()

    def _end(self) -> None:
        with self._work.contained("the end of a step"):  # a step begins all the same
            # Of a stage in which nothing was recorded the last look lies before a pause.
            is_awake = self.clock.is_recording and self._is_awake
            if is_awake and self._looking.is_allowed():
                self._observer.end_step()

    def _look_at_modes(self) -> None:
        with self._work.contained("the training modes of modules"):
            if self.clock.is_recording and self._looking.is_allowed():
                self._observer.look_at_modes()

    def _tell_stage(self, stage: str) -> None:
        if self.clock.enter_stage(stage):
            record = self._journal.begin("stage")
            record["stage"] = stage
            record["t_ns"] = time.monotonic_ns()
            self._journal.write(record)

    def _tell_step(self) -> None:
        record = self._journal.begin("step")
        record["sampled"] = self.clock.is_recording
        record["t_ns"] = time.monotonic_ns()
        self._journal.write(record)

    def _go_on(self) -> None:
        """Take note of what the policy says of the step that has begun."""
        self._follow_clock()
        if self.is_due:
            self.resume()

    def _follow_clock(self) -> None:
        """Take note that recording is on or off now.

        A stage switches it on, and a step of evaluation often off again before anything was to be
        recorded: so it does not go on at once.
        """
        self._has_lost |= self._journal.lost_records()
        is_recording = self.clock.is_recording
        if self._is_awake and not is_recording:
            self._tracker.rest()
            self._is_awake = False
        self.is_due = is_recording and (self._has_lost or not self._is_awake)

    def resume(self) -> None:
        """Say that records were left out, if so, and how the variables stand now.

        Readers forget how they stood, too, where records were lost.
        """
        self.is_due = self._has_lost = False
        with self._work.contained("the end of a pause"):
            if not self._is_awake:
                self._is_awake = True
                self._tracker.wake()
                self._journal.gap("sampling")
            if self._looking.is_allowed():
                self._observer.resume()
