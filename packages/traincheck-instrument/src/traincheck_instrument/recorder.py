"""The recorder: joins wrappers, trackers and sink. One a process."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import torch

from traincheck_instrument.api.spec import FunctionSpec
from traincheck_instrument.contexts import active_contexts
from traincheck_instrument.encode import Encoder
from traincheck_instrument.faults import Faults
from traincheck_instrument.source_lines import SourceLines
from traincheck_instrument.trackers.optimizers import Optimizers
from traincheck_instrument.trackers.variables import ATTRIBUTES, Change, Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from traincheck_instrument.position import StepClock
    from traincheck_instrument.sink.shard import Shard

ROLES = ("parameter",)


@attrs.define(eq=False)
class OpenCall:
    """A call that has begun."""

    id: int
    spec: FunctionSpec
    owner: int  # id of the object whose method is called; 0 for a function
    src: int | None
    is_observed: bool


class ThreadState(threading.local):
    """The open calls of a thread, and whether the recorder itself is at work in it."""

    _ordinals = itertools.count()

    def __init__(self) -> None:
        self.ordinal = next(ThreadState._ordinals)
        self.stack: list[OpenCall] = []
        self.is_busy = False


class Recorder:
    """Takes what the wrappers and marks report, and hands records to the sink.

    Every public method contains the recorder's own faults. While it is at work in a thread, wrapped
    functions called there are not recorded.
    """

    def __init__(
        self, shard: Shard, clock: StepClock, attributes: Iterable[str] = ATTRIBUTES
    ) -> None:
        self.clock = clock
        self.thread = ThreadState()
        self.faults = Faults(report=lambda detail: self._gap("fault", detail))
        self.optimizers = Optimizers(on_named=self._name_object)
        self.encode = Encoder()
        self.variables = Variables(self.encode, self.optimizers, attributes)
        self._shard = shard
        self._lines = SourceLines()
        self._next_seq = itertools.count().__next__
        self._next_call = itertools.count().__next__
        self._told_functions: set[str] = set()
        self._assigned: dict[int, int] = {}  # id of a parameter: line of its last assignment
        self._last_look = 0  # seq of the last record of observation
        self._was_recording = True

    @property
    def is_recording(self) -> bool:
        """Whether calls are to be recorded now, in this thread."""
        return self.clock.is_recording and not self.thread.is_busy

    # Calls ------------------------------------------------------------------------------------

    def begin(
        self, spec: FunctionSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> OpenCall | None:
        """Record that a call begins; None if it is part of a call that is recorded already."""
        thread = self.thread
        owner = id(args[0]) if spec.is_method and args else 0
        if thread.stack and _is_super_call(thread.stack[-1], spec, owner):
            return None
        thread.is_busy = True
        try:
            return self._begin(spec, args, kwargs, owner)
        except Exception as error:  # noqa: BLE001 - training must not feel our faults
            self.faults.contain(f"the begin of {spec.name}", error)
            return None
        finally:
            thread.is_busy = False

    def end(self, call: OpenCall, result: Any) -> None:
        """Record that a call returned."""
        self._finish(call, "call_end", lambda record: self._add_result(call, record, result))

    def fail(self, call: OpenCall, error: BaseException) -> None:
        """Record that a call raised."""
        self._finish(call, "call_error", lambda record: self._add_error(record, error))

    def _begin(
        self,
        spec: FunctionSpec,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        owner: int,
    ) -> OpenCall:
        stack = self.thread.stack
        if spec.name not in self._told_functions:
            self._tell_function(spec)
        if spec.is_optimizer_method and isinstance(args[0], torch.optim.Optimizer):
            self.optimizers.add(args[0])
        caller = self._lines.caller(3)
        if caller is None and not stack:
            caller = self._lines.nearest()
        src = self._source(*caller) if caller else (stack[-1].src if stack else None)
        record: dict[str, Any] = self._record("call_begin")
        call = OpenCall(
            id=self._next_call(),
            spec=spec,
            owner=owner,
            src=src,
            is_observed=self._is_to_be_observed(spec),
        )
        record["id"] = call.id
        record["function"] = spec.name
        if stack:
            record["parent"] = stack[-1].id
        if src is not None:
            record["src"] = src
        self._add_arguments(record, spec, args, kwargs)
        if contexts := active_contexts(self.encode):
            record["ctx"] = contexts
        record["t_ns"] = time.monotonic_ns()
        self._shard.append(record)
        if call.is_observed:
            self._observe("begin", call, attributes=spec.observe_attributes)
        stack.append(call)
        return call

    def _finish(self, call: OpenCall, kind: str, add: Callable[[dict[str, Any]], None]) -> None:
        thread = self.thread
        thread.is_busy = True
        try:
            while thread.stack and thread.stack.pop() is not call:
                continue
            if call.is_observed and self.clock.is_recording:
                self._observe("end", call, attributes=call.spec.observe_attributes)
            record = self._record(kind)
            record["id"] = call.id
            record["function"] = call.spec.name
            add(record)
            record["t_ns"] = time.monotonic_ns()
            self._shard.append(record)
        except Exception as error:  # noqa: BLE001
            self.faults.contain(f"the end of {call.spec.name}", error)
        finally:
            thread.is_busy = False

    def _add_result(self, call: OpenCall, record: dict[str, Any], result: Any) -> None:
        if call.spec.wants_result:
            record["result"] = self.encode(result)

    def _add_error(self, record: dict[str, Any], error: BaseException) -> None:
        record["exception"] = self.encode.type_name(type(error))
        message = error.args[0] if error.args and isinstance(error.args[0], str) else ""
        record["message"] = message[:200].encode("utf-8", "replace").decode()

    def _add_arguments(
        self,
        record: dict[str, Any],
        spec: FunctionSpec,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        if spec.is_method and args:
            record["self"] = self.encode(args[0])
        if not spec.wants_any_argument:
            return
        first = 1 if spec.is_method else 0
        names = spec.parameters
        encoded = record["args"] = {}
        for index in range(first, len(args)):
            name = names[index] if index < len(names) else str(index)
            if spec.wants(name):
                encoded[name] = self.encode(args[index])
        for name, value in kwargs.items():
            if spec.wants(name):
                encoded[name] = self.encode(value)

    def _tell_function(self, spec: FunctionSpec) -> None:
        self._told_functions.add(spec.name)
        record = self._record("function")
        record["name"] = spec.name
        record["bases"] = spec.bases
        record["aliases"] = spec.aliases
        record["parameters"] = spec.parameters
        self._shard.append(record)

    def _is_to_be_observed(self, spec: FunctionSpec) -> bool:
        """Only the outermost of several calls that do the same thing is looked around."""
        return spec.observe_as is not None and not (
            self.variables.is_empty
            or any(call.spec.observe_as == spec.observe_as for call in self.thread.stack)
        )

    # Variables --------------------------------------------------------------------------------

    def track(self, model: Any, name: str) -> None:
        """Track the parameters of a model under the name that the program gave it."""
        if not isinstance(model, torch.nn.Module):
            return
        with self._at_work(f"the tracking of {name}"):
            self.variables.add_model(model, name)
            self._write_changes(self.variables.walk(), None, None)
            if self.clock.is_recording:
                self._write_changes(self.variables.look(ATTRIBUTES), None, None)

    def note_assignment(self, parameter: torch.nn.Parameter, attribute: str) -> None:
        """Take note that the program assigned an attribute of a tracked parameter."""
        if attribute not in ATTRIBUTES or not self.is_recording:
            return
        with self._at_work("an assignment"):
            if (place := self._lines.nearest()) is not None:
                self._assigned[id(parameter)] = self._source(*place)

    def _observe(self, phase: str, call: OpenCall | None, attributes: Iterable[str]) -> None:
        looked_at = [name for name in attributes if name in self.variables.attributes]
        if self.variables.is_empty or not looked_at:
            return
        since = self._last_look
        changes = self.variables.look(looked_at)
        during = call if phase == "end" else None
        self._write_changes(changes, during, since)
        record = self._record("observe")
        record["phase"] = phase
        if call is not None:
            record["call"] = call.id
            record["function"] = call.spec.name
        record["roles"] = ROLES
        record["attributes"] = looked_at
        self._last_look = record["seq"]
        self._shard.append(record)

    def _write_changes(
        self, changes: Iterable[Change], during: OpenCall | None, since: int | None
    ) -> None:
        for change in changes:
            variable = change.variable
            record = self._record("var")
            record["event"] = change.event
            record["id"] = variable.id
            record["names"] = variable.names
            record["role"] = "parameter"
            record["type"] = "torch.nn.Parameter"
            record["storage"] = variable.storage
            record["held_by"] = [
                {"optimizer": name, "group": group} for name, group in variable.holders
            ]
            record["attributes"] = change.attributes
            if during is not None:
                record["call"] = during.id
            elif since is not None:
                record["between"] = (since, record["seq"])
            if (src := self._assigned_at(variable.reference())) is not None:
                record["src"] = src
            self._shard.append(record)

    def _assigned_at(self, parameter: torch.nn.Parameter | None) -> int | None:
        return self._assigned.pop(id(parameter), None)

    # Steps and stages -------------------------------------------------------------------------

    def start_step(self, *, accumulating: bool = False) -> None:
        """Begin a pass through the body of the training loop."""
        with self._at_work("the begin of a step"):
            self.clock.leave_evaluation()
            if not self.clock.begins_step(accumulating=accumulating):
                self.clock.accumulate()
                return
            self._end_step()
            self._enter_stage("training")
            self.clock.advance()
            self._resume_or_pause()
            self._tell_step()
            self._shard.flush()

    def start_eval_step(self) -> None:
        """Begin a pass through the body of an evaluation loop."""
        with self._at_work("the begin of an evaluation step"):
            self.clock.advance_eval()
            self._resume_or_pause()
            self._tell_step()

    def enter_stage(self, stage: str) -> None:
        """Enter a stage of the run."""
        with self._at_work("the begin of a stage"):
            self._enter_stage(stage)
            self._resume_or_pause()

    def leave_evaluation(self, stage: str) -> None:
        """End a pass of evaluation and go back to the stage before it."""
        with self._at_work("the end of an evaluation"):
            self.clock.leave_evaluation()
            self._enter_stage(stage)
            self._resume_or_pause()

    def stop(self) -> None:
        """Record nothing any more; wrappers that torch has wrapped in turn stay in place."""
        self.clock.is_recording = False

    def optimizer_stepped(self, *_: Any) -> None:
        """Take note that an optimizer has stepped."""
        self.clock.has_stepped = True

    def after_fork(self) -> None:
        """Forget the parent's open calls; called in the child."""
        self.thread.stack.clear()
        self.thread.is_busy = False
        self._told_functions.clear()
        self._lines = SourceLines()

    def finish(self) -> None:
        """Look at the variables a last time."""
        with self._at_work("the end of the run"):
            self._end_step()

    def _end_step(self) -> None:
        if self.clock.is_recording and not self.variables.is_empty:
            self._write_changes(self.variables.walk(), None, None)
            self._observe("step_end", None, ATTRIBUTES)

    def _enter_stage(self, stage: str) -> None:
        if self.clock.enter_stage(stage):
            record = self._record("stage")
            record["stage"] = stage
            record["t_ns"] = time.monotonic_ns()
            self._shard.append(record)

    def _tell_step(self) -> None:
        record = self._record("step")
        record["sampled"] = self.clock.is_recording
        record["t_ns"] = time.monotonic_ns()
        self._shard.append(record)

    def _resume_or_pause(self) -> None:
        """After a pause say that records were left out, and how the variables stand now."""
        if self.clock.is_recording and not self._was_recording:
            self._gap("sampling", "")
            self.variables.walk()
            self._write_changes(self.variables.look(ATTRIBUTES, as_baseline=True), None, None)
        self._was_recording = self.clock.is_recording

    # Records ----------------------------------------------------------------------------------

    def _record(self, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "thread": self.thread.ordinal,
            "seq": self._next_seq(),
            **self.clock.fields,
        }

    def _gap(self, reason: str, detail: str) -> None:
        record = self._record("gap")
        record["reason"] = reason
        if detail:
            record["detail"] = detail[:500].encode("utf-8", "replace").decode()
        self._shard.append(record)

    def _source(self, frame: Any, line: int) -> int:
        number, is_new = self._lines.number(frame, line)
        if is_new:
            record = self._record("source")
            record["id"] = number
            record["file"] = frame.f_code.co_filename
            record["line"] = line
            record["function"] = frame.f_code.co_name
            self._shard.append(record)
        return number

    def _name_object(self, key: int, name: str | None) -> None:
        if name is None:
            self.encode.names.pop(key, None)
        else:
            self.encode.names[key] = name

    @contextmanager
    def _at_work(self, doing: str) -> Iterator[None]:
        thread = self.thread
        was_busy, thread.is_busy = thread.is_busy, True
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self.faults.contain(doing, error)
        finally:
            thread.is_busy = was_busy


def _is_super_call(outer: OpenCall, spec: FunctionSpec, owner: int) -> bool:
    """Whether `spec` is called by an override of it, on the same object: one call to the user."""
    return owner != 0 and outer.owner == owner and spec.name in outer.spec.bases
