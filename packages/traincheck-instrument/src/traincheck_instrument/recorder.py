"""The recorder: joins wrappers, trackers and sink. One a process."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.contexts import active_contexts
from traincheck_instrument.encode import Encoder
from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.faults import Faults
from traincheck_instrument.journal import Journal
from traincheck_instrument.observer import Observer
from traincheck_instrument.open_calls import OpenCall, ThreadState
from traincheck_instrument.trackers.optimizers import Optimizers
from traincheck_instrument.trackers.parameter import ParameterPatches
from traincheck_instrument.trackers.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.sink.shard import Shard
    from traincheck_instrument.step_clock import StepClock


# Modes and subclasses of the program would take part in what the recorder does with tensors; the
# public form of this leaves the modes on.
_without_modes = torch._C.DisableTorchFunction  # noqa: SLF001
_arguments_of = vars(BaseException)["args"].__get__


class Recorder:
    """Takes what the wrappers and marks report, and hands records to the sink.

    Every public method contains the recorder's own faults. While it is at work in a thread, wrapped
    functions called there are not recorded, and marks set there have to wait: a signal handler of
    the program may set one at any moment.
    """

    def __init__(
        self, shard: Shard, clock: StepClock, attributes: Iterable[str], *, wants_contexts: bool
    ) -> None:
        self.clock = clock
        self._wants_contexts = wants_contexts
        self.thread = ThreadState(itertools.count().__next__)
        self.optimizers = Optimizers(on_named=self._name_object)
        self._journal = Journal(shard, clock, self.thread)
        self.faults = Faults(report=lambda detail: self._journal.gap("fault", detail))
        self._encode = Encoder()
        self.parameters = ParameterPatches(self._note_assignment)
        convert = self.parameters.convert
        variables = Variables(self._encode, self.optimizers, convert, attributes)
        self._observer = Observer(variables, self._journal)
        self._next_call = itertools.count().__next__
        self._told_functions: set[str] = set()
        self._was_recording = True
        self._looking: int | None = None  # ordinal of the thread that looks at variables
        self._is_blind = False
        self._forks = 0  # that led from the process that began to record to this one

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of variables that are recorded."""
        return self._observer.variables.attributes

    # Calls: reported by the wrappers.

    def begin(
        self, spec: FunctionSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> OpenCall | None:
        """Record that a call begins; None if it is part of a call that is recorded already."""
        thread = self.thread
        owner = id(args[0]) if spec.is_method and args else 0
        if thread.stack and thread.stack[-1].is_override_of(spec, owner):
            return None
        thread.is_busy = True
        try:
            with _without_modes():
                return self._begin(spec, args, kwargs, owner)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.faults.contain(f"the begin of {spec.name}", error)
            return None
        finally:
            thread.is_busy = False
            if thread.postponed:
                self._take_postponed()

    def end(self, call: OpenCall, result: Any) -> None:
        """Record that a call returned."""
        self._finish(call, "call_end", lambda record: self._add_result(call, record, result))

    def fail(self, call: OpenCall, error: BaseException) -> None:
        """Record that a call raised."""
        self._finish(call, "call_error", lambda record: self._add_error(record, error))

    def _begin(
        self, spec: FunctionSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any], owner: int
    ) -> OpenCall:
        stack = self.thread.stack
        if spec.name not in self._told_functions:
            self._tell_function(spec)
        if spec.is_optimizer_method and isinstance(args[0], torch.optim.Optimizer):
            self.optimizers.add(args[0])
        src = self._source_of_caller(stack)
        record = self._journal.begin("call_begin")
        is_observed = self._observer.is_to_look(spec, stack) and self._may_look()
        call = OpenCall(self._next_call(), spec, owner, src, is_observed, self._forks)
        record["id"] = call.id
        record["function"] = spec.name
        if stack:
            record["parent"] = stack[-1].id
        if src is not None:
            record["src"] = src
        self._add_arguments(record, spec, args, kwargs)
        if self._wants_contexts and (contexts := active_contexts(self._encode)):
            record["ctx"] = contexts
        record["t_ns"] = time.monotonic_ns()
        self._journal.write(record)
        stack.append(call)  # whatever comes now, it gets its end
        self._look("begin", call)
        return call

    def _look(self, phase: str, call: OpenCall) -> None:
        """Look around a call, if that is to be done; a fault costs only the look."""
        if not call.is_observed or not self.clock.is_recording:
            return
        try:
            self._observer.look(phase, call)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.faults.contain(f"the look at variables around {call.spec.name}", error)

    def _may_look(self) -> bool:
        """Whether this thread may look at the variables.

        Only one may: another might free what it reads. A thread of torch, which works for one that
        waits, leaves the looking to that. If the program trains in two, nobody looks any more.
        """
        thread = self.thread
        if self._looking is None:
            self._looking = thread.ordinal
        is_other = thread.ordinal != self._looking
        if is_other and thread.is_of_program and not self._is_blind:
            self._is_blind = True
            self._journal.gap("fault", "several threads train: variables are not looked at")
        return not is_other and not self._is_blind

    def _source_of_caller(self, stack: list[OpenCall]) -> int | None:
        """Return the line of the call if it stands in user code, else that of the call around."""
        lines = self._journal.lines
        place = lines.caller(4)  # this method, _begin, begin and the wrapper lie between
        if place is None:
            if stack:
                return stack[-1].src
            place = lines.nearest()
        return None if place is None else self._journal.source(*place)

    def _finish(self, call: OpenCall, kind: str, add: Callable[[dict[str, Any]], None]) -> None:
        if call.forks != self._forks:  # its begin is in the trace of another process
            return
        thread = self.thread
        thread.is_busy = True
        try:
            if call in thread.stack:
                del thread.stack[thread.stack.index(call) :]
            with _without_modes():
                self._look("end", call)
                record = self._journal.begin(kind)
                record["id"] = call.id
                record["function"] = call.spec.name
                add(record)
            record["t_ns"] = time.monotonic_ns()
            self._journal.write(record)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.faults.contain(f"the end of {call.spec.name}", error)
        finally:
            thread.is_busy = False
            if thread.postponed:
                self._take_postponed()

    def _add_result(self, call: OpenCall, record: dict[str, Any], result: Any) -> None:
        if call.spec.wants_result:
            record["result"] = self._encode(result)

    def _add_error(self, record: dict[str, Any], error: BaseException) -> None:
        record["exception"] = self._encode.type_name(type(error))
        # Not what the class of the program says that they are, nor what their methods do.
        said = next(iter(_arguments_of(error)), "")
        record["message"] = start_of_text(said) if issubclass(type(said), str) else ""

    def _add_arguments(
        self,
        record: dict[str, Any],
        spec: FunctionSpec,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        first = 0
        if spec.is_method and args:
            first = 1
            record["self"] = self._encode(args[0])
        if not spec.wants_any_argument:
            return
        names = spec.parameters
        encoded = record["args"] = {}
        for index in range(first, len(args)):
            name = names[index] if index < len(names) else str(index)
            if spec.wants(name):
                encoded[name] = self._encode(args[index])
        for name, value in kwargs.items():
            if spec.wants(name):
                encoded[start_of_text(name)] = self._encode(value)

    def _tell_function(self, spec: FunctionSpec) -> None:
        self._told_functions.add(spec.name)
        record = self._journal.begin("function")
        record["name"] = spec.name
        record["bases"] = spec.bases
        record["aliases"] = spec.aliases
        record["parameters"] = spec.parameters
        self._journal.write(record)

    def _name_object(self, key: int, name: str | None) -> None:
        if name is None:
            self._encode.names.pop(key, None)
        else:
            self._encode.names[key] = name

    # Variables: reported by the tracker.

    def track(self, model: Any, name: str) -> None:
        """Track the parameters of a model under the name that the program gave it."""

        def take() -> None:
            if isinstance(model, torch.nn.Module):
                self._observer.track(model, name, is_recording=self.clock.is_recording)

        self._take("the tracking of a model", take)

    def _note_assignment(self, parameter: torch.nn.Parameter) -> None:
        thread = self.thread
        # A change inside a recorded call has the line of that call.
        if not (thread.stack or thread.is_busy) and self.clock.is_recording:
            self._take("an assignment", lambda: self._observer.note_assignment(parameter))

    # Steps and stages: reported by the marks.

    def start_step(self, *, accumulating: bool = False) -> None:
        """Begin a pass through the body of the training loop."""
        self._take("the begin of a step", lambda: self._start_step(accumulating=accumulating))

    def start_eval_step(self) -> None:
        """Begin a pass through the body of an evaluation loop."""
        self._take("the begin of an evaluation step", self._start_eval_step)

    def enter_stage(self, stage: str) -> None:
        """Enter a stage of the run."""
        self._take("the begin of a stage", lambda: self._enter_stage(stage))

    def leave_evaluation(self, stage: str) -> None:
        """End a pass of evaluation and go back to the stage before it."""
        self._take("the end of an evaluation", lambda: self._leave_evaluation(stage))

    def _start_step(self, *, accumulating: bool) -> None:
        self.clock.leave_evaluation()
        if not self.clock.begins_step(accumulating=accumulating):
            self._tell_stage("training")
            self.clock.accumulate()
            self._resume_or_pause()
            return
        self._end_step()
        self._tell_stage("training")
        self.clock.advance()
        self._resume_or_pause()
        self._tell_step()
        self._journal.flush()

    def _start_eval_step(self) -> None:
        self.clock.advance_eval()
        self._resume_or_pause()
        self._tell_step()

    def _enter_stage(self, stage: str) -> None:
        self._tell_stage(stage)
        self._resume_or_pause()

    def _leave_evaluation(self, stage: str) -> None:
        self.clock.leave_evaluation()
        self._enter_stage(stage)

    def optimizer_stepped(self, *_: Any) -> None:
        """Take note that an optimizer has stepped."""
        self.clock.has_stepped = True

    def after_fork(self) -> None:
        """Forget the parent's open calls; called in the child."""
        self.thread.stack.clear()
        self.thread.is_busy = False
        self.thread.postponed.clear()
        self._forks += 1
        self._told_functions.clear()
        self._observer.after_fork()
        self._journal.after_fork()

    def stop(self) -> None:
        """Record nothing any more; wrappers that torch has wrapped in turn stay in place."""
        self.clock.stop()

    def _end_step(self) -> None:
        try:
            if self.clock.is_recording and self._may_look():
                self._observer.end_step()
        except Exception as error:  # noqa: BLE001  a step begins all the same
            self.faults.contain("the end of a step", error)

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

    def _resume_or_pause(self) -> None:
        """After a pause say that records were left out, and how the variables stand now.

        Readers forget how they stood, too, where records were lost.
        """
        if self.clock.is_recording:
            if not self._was_recording:
                self._journal.gap("sampling")
            if self._journal.lost_records() or not self._was_recording:
                self._observer.resume()
        self._was_recording = self.clock.is_recording

    def _take(self, doing: str, mark: Callable[[], None]) -> None:
        """Do what a mark asks for, or leave it for when the work that it interrupted is done."""
        thread = self.thread
        if thread.is_busy:
            thread.postponed.append(lambda: self._take(doing, mark))
            return
        thread.is_busy = True
        try:
            with _without_modes():
                mark()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.faults.contain(doing, error)
        finally:
            thread.is_busy = False
            if thread.postponed:
                self._take_postponed()

    def _take_postponed(self) -> None:
        postponed = self.thread.postponed
        while postponed:
            postponed.popleft()()
