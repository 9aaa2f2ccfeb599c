"""What a tracker notices between the looks, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.recorder.open_calls import ThreadState
from traincheck_instrument.recorder.work import Work
from traincheck_instrument.steps.step_clock import StepClock
from traincheck_instrument.variables.observer import Observer

if TYPE_CHECKING:
    from types import FrameType

    import torch


@attrs.define(eq=False)
class Noticing:
    """Hands what a tracker notices to the observer, if that is to be recorded. Contains faults."""

    _clock: StepClock
    _thread: ThreadState
    _work: Work
    _observer: Observer

    @property
    def is_on(self) -> bool:
        """Whether a line is to be noted: a change inside a recorded call has the line of that."""
        thread = self._thread
        return self._clock.is_recording and not (thread.stack or thread.is_busy)

    def assigned(self, parameter: torch.nn.Parameter) -> None:
        """Take note that the program assigned to an attribute of a parameter."""
        if self.is_on:
            self._work.take("an assignment", lambda: self._observer.note_assignment(parameter))

    def reached(self, name: str, caller: FrameType) -> None:
        """Take note that the program reached a part of a model through it."""
        self._work.take("an access", lambda: self._observer.note_reach(name, caller))

    def rebuilt(self, name: str, caller: FrameType) -> None:
        """Take note that the program put another part in place, or took one away."""

        def tell() -> None:
            self._observer.note_reach(name, caller)
            self._observer.renew()

        self._work.take("a change of a model", tell)
