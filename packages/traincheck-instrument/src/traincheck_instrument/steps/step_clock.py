"""Where a run stands: stage, training step, evaluation pass, and whether it is recorded."""

from __future__ import annotations

from typing import get_args

import attrs

from traincheck_trace_schema.records import Stage

STAGES: tuple[str, ...] = get_args(Stage)


class Place:
    """What a record says of where it stands: the fields, and the same as JSON without the braces.

    Read for each record; never changed.
    """

    __slots__ = ("fields", "text")

    def __init__(self, fields: dict[str, int]) -> None:
        self.fields = fields
        self.text = ",".join(f'"{name}":{value}' for name, value in fields.items())


@attrs.define(eq=False)
class StepClock:
    """Counts training and evaluation steps, and decides which of them are recorded.

    Steps count from 0, those of evaluation anew in each pass, so that ranks whose passes differ in
    length stand in the same window again in the next one. Which of these are recorded is decided by
    a counter that goes on: a warm-up would otherwise be repeated in each pass.
    """

    interval: int = 1
    warm_up: int = 0
    stage: str = "init"
    step: int = -1
    micro_step: int = 0
    eval_pass: int = 0
    eval_step: int | None = None
    is_recording: bool = True  # read at each call, set by `_record`
    has_stepped: bool = False  # an optimizer stepped since the training step began
    is_sampled: bool = True  # by the policy: the last step, of training or evaluation
    _step_is_sampled: bool = True
    _is_stopped: bool = False
    eval_steps: int = 0  # that began in the run
    place: Place = attrs.field(init=False, factory=lambda: Place({}))  # replaced as a whole

    def __attrs_post_init__(self) -> None:
        self._refresh()

    @property
    def fields(self) -> dict[str, int]:
        """What a record says of where it stands."""
        return self.place.fields

    def begins_step(self, *, accumulating: bool) -> bool:
        """Whether the next pass through the training loop's body is a new step."""
        return not (accumulating and self.step >= 0 and not self.has_stepped)

    def advance(self) -> None:
        """Begin the next training step."""
        self.step += 1
        self.micro_step = self.eval_pass = 0
        self.eval_step = None
        self.has_stepped = False
        self.is_sampled = self._step_is_sampled = self._is_sampled(self.step)
        self._record(self.is_sampled)
        self._refresh()

    def accumulate(self) -> None:
        """Begin another micro-batch of the training step."""
        self.micro_step += 1
        self._record(self._step_is_sampled)
        self._refresh()

    def advance_eval(self) -> None:
        """Begin the next evaluation step, and a pass of evaluation if none has begun."""
        if self.eval_step is None:
            self.eval_pass += 1
            self.eval_step = 0
        else:
            self.eval_step += 1
        self.is_sampled = self.records_next_eval()
        self._record(self.is_sampled)
        self.eval_steps += 1
        self._refresh()

    def leave_evaluation(self) -> None:
        """End a pass of evaluation; what is recorded from now on is for the caller to say."""
        self.eval_step = None
        self._refresh()

    def go_on(self) -> None:
        """Record what comes now as if no evaluation had been in between."""
        self._record(self.records_in(self.stage))

    def records_in(self, stage: str) -> bool:
        """Whether what comes is recorded when a stage is entered, before a step of evaluation."""
        return self._step_is_sampled if stage == "training" else True

    def records_next_eval(self) -> bool:
        """Whether the next step of evaluation is recorded."""
        return self._is_sampled(self.eval_steps)

    def enter_stage(self, stage: str) -> bool:
        """Enter a stage, which switches recording on; return whether it is another one.

        Raises:
            ValueError: a trace has no such stage.
        """
        if stage == self.stage:
            return False
        if stage not in STAGES:
            raise ValueError(f"there is no stage {stage!r}; it is one of {', '.join(STAGES)}")
        self.stage = stage
        self.go_on()
        return True

    def stop(self) -> None:
        """Record nothing any more."""
        self._is_stopped = True
        self.is_recording = False

    def _record(self, wanted: bool) -> None:  # noqa: FBT001  says what the method is about
        self.is_recording = wanted and not self._is_stopped

    def _is_sampled(self, step: int) -> bool:
        return step < self.warm_up or (step - self.warm_up) % self.interval == 0

    def _refresh(self) -> None:
        fields = {"step": self.step}
        if self.eval_pass:
            fields["eval_pass"] = self.eval_pass
        if self.eval_step is not None:
            fields["eval_step"] = self.eval_step
        if self.micro_step:
            fields["micro_step"] = self.micro_step
        self.place = Place(fields)
