"""The recorder: joins wrappers, trackers and sink. One a process."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.contexts.contexts import Contexts
from traincheck_instrument.encode import Encoder, TextEncoder
from traincheck_instrument.recorder.calls import Calls
from traincheck_instrument.recorder.faults import Faults
from traincheck_instrument.recorder.journal import Journal
from traincheck_instrument.recorder.open_calls import ThreadState
from traincheck_instrument.recorder.overhead import Overhead
from traincheck_instrument.recorder.told_contents import ContentEncoder
from traincheck_instrument.recorder.work import Work
from traincheck_instrument.steps.steps import Steps
from traincheck_instrument.trackers.noticing import Noticing
from traincheck_instrument.trackers.registrations import Registrations
from traincheck_instrument.trackers.swapping import SwapPatch
from traincheck_instrument.trackers.tracker import make_tracker
from traincheck_instrument.trackers.wrapped import without_wrappers
from traincheck_instrument.variables.looking import Looking
from traincheck_instrument.variables.observer import Observer
from traincheck_instrument.variables.optimizers import Optimizers
from traincheck_instrument.variables.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_instrument.settings import Tracker
    from traincheck_instrument.sink.shard import Shard
    from traincheck_instrument.steps.step_clock import StepClock
    from traincheck_instrument.variables.wanted import Wanted


class Recorder:
    """Takes what the wrappers and marks report, and hands records to the sink.

    Every public method contains the recorder's own faults.
    """

    def __init__(
        self,
        shard: Shard,
        clock: StepClock,
        wanted: Wanted,
        *,
        contexts: frozenset[str] | None,
        tracker: Tracker | None,
    ) -> None:
        self.clock = clock
        self._has_threads = False  # of the program, that call what is recorded
        self.on_tracked: Callable[[type], None] = lambda _: None  # told of the classes of models
        self.thread = ThreadState(itertools.count().__next__, self._meet_thread)
        self._journal = Journal(shard, clock, self.thread)
        self.faults = Faults(report=lambda detail: self._journal.gap("fault", detail))
        self._encode = Encoder()
        self.optimizers = Optimizers(on_named=self._encode.name_object)
        self.contexts = Contexts(self._encode, contexts)
        variables = Variables(self._encode, self.optimizers, self._convert, wanted)
        self._observer = Observer(variables, self._journal)
        self.overhead = Overhead(lambda: shard.writer_ns)
        self.work = Work(self.thread, self.faults, self.overhead)
        looking = Looking(self.thread, self._journal)
        noticing = Noticing(clock, self.thread, self.work, self._observer)
        self.tracker = make_tracker(tracker, noticing)
        self.swaps = SwapPatch(self.tracker, variables, self.faults)
        self.registrations = Registrations(variables.note_part)
        self.steps = Steps(clock, self._journal, self._observer, looking, self.work, self.tracker)
        write = TextEncoder(self._encode).__call__  # bound once
        self.calls = Calls(
            clock,
            self._journal,
            self._observer,
            self.optimizers,
            looking,
            self.work,
            self.contexts,
            self.steps,
            write,
            ContentEncoder(write, self._encode.tensor),
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of variables that are recorded."""
        return self._observer.variables.attributes_of("parameter")

    def _meet_thread(self, thread: ThreadState) -> None:
        self._has_threads |= thread.ordinal > 0 and thread.is_of_program

    # Variables: reported by the tracker.

    def track(self, model: Any, name: str) -> None:
        """Track the parameters of a model under the name that the program gave it."""

        def take() -> None:
            if issubclass(type(model), torch.nn.Module):  # not what the object says of itself
                self.steps.prepare()
                if self.steps.is_due:
                    self.steps.resume()
                inner = without_wrappers(model)
                self._observer.track(inner, name, is_recording=self.clock.is_recording)
                self.tracker.adopt(inner, name)
                self.on_tracked(type(inner))

        self.work.take("the tracking of a model", take)

    def _convert(self, parameter: torch.nn.Parameter) -> None:
        self.tracker.convert(parameter)

    def tell_loss(self, detail: str) -> None:
        """Say that something was not recorded here."""
        self.work.take("a loss", lambda: self._journal.gap("fault", detail))

    def leave_out(self, why: str) -> None:
        """Say that what other threads do now may not be recorded, if there are some."""
        if self._has_threads and self.clock.is_recording:
            self.work.take("a pause", lambda: self._leave_out(why))

    def _leave_out(self, why: str) -> None:
        self._journal.gap("sampling", why)
        self.steps.is_due = True  # readers have forgotten how the variables stand

    def catch_up(self) -> None:
        """Forget what was interrupted, and tell what could not be told; once in each step."""
        self.calls.forget_abandoned()
        self.faults.tell_waiting()

    def optimizer_stepped(self, *_: Any) -> None:
        """Take note that an optimizer has stepped."""
        self.clock.has_stepped = True

    def after_fork(self) -> None:
        """Forget the parent's open calls; called in the child."""
        self.thread.is_busy = False
        self.thread.postponed.clear()
        self.calls.after_fork()
        self._observer.after_fork()
        self._journal.after_fork()

    def stop(self) -> None:
        """Record nothing any more; wrappers that torch has wrapped in turn stay in place."""
        self.work.take("the end of the recording", self.faults.tell_waiting)
        self.clock.stop()
