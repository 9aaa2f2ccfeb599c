"""Records calls: what the wrappers report. This is the hot path of the recording.

A call becomes JSON text at once, in one piece: that takes less time than to make objects of it, for
the writer to turn into text, and leaves nothing behind for the collector of garbage.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import torch

from traincheck_instrument.api.wrapper import CODE
from traincheck_instrument.contexts.contexts import Contexts
from traincheck_instrument.encode.names import type_name
from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.encode.text import key_text
from traincheck_instrument.recorder.journal import Journal
from traincheck_instrument.recorder.modes import WithoutAny, count_modes, without_functions
from traincheck_instrument.recorder.open_calls import OpenCall
from traincheck_instrument.recorder.source_lines import NOT_USER
from traincheck_instrument.recorder.told_contents import ContentEncoder
from traincheck_instrument.recorder.work import Work
from traincheck_instrument.steps.step_clock import StepClock
from traincheck_instrument.steps.steps import Steps
from traincheck_instrument.variables.looking import Looking, is_capturing
from traincheck_instrument.variables.observer import Observer
from traincheck_instrument.variables.optimizers import Optimizers
from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from types import FrameType

    from traincheck_instrument.api.spec import FunctionSpec

_now = time.monotonic_ns
_arguments_of = vars(BaseException)["args"].__get__
_WRAPPER = 2  # frames from `_begin`: `begin` lies between


@attrs.define(eq=False)
class Calls:
    """Writes a record where a call begins, returns or raises. Contains its own faults."""

    _clock: StepClock
    _journal: Journal
    _observer: Observer
    _optimizers: Optimizers
    _looking: Looking
    _work: Work
    _contexts: Contexts
    _steps: Steps
    _write: Callable[[Any], str]  # a value of the program, as JSON text
    _write_content: ContentEncoder  # the same, with what tensors hold
    with_stacks: bool = False  # each call names all lines of user code around it
    _next_id: Callable[[], int] = attrs.field(factory=lambda: itertools.count().__next__)
    _forks: int = 0  # that led from the process that began to record to this one
    _last_contexts: tuple[Mapping[str, Any], str] = ({}, "")  # the same at most calls; their text

    def begin(
        self, spec: FunctionSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> OpenCall | None:
        """Record that a call begins; None if it is part of a call that is recorded already.

        To be called by the wrapper itself, whose caller is who calls the function.
        """
        t_ns = _now()
        work = self._work
        thread = work.thread
        stack = thread.stack
        depth = len(stack)
        owner = id(args[0]) if spec.is_method and args else 0
        try:
            try:
                if owner and stack and stack[-1].is_override_of(spec, owner):
                    return None
                thread.is_busy = True
                with WithoutAny() if count_modes() else without_functions():
                    return self._begin(spec, args, kwargs, owner, stack, t_ns)
            except Exception as error:  # noqa: BLE001  training must not feel our faults
                work.faults.contain(f"the begin of {spec.name}", error)
                return stack[depth] if len(stack) > depth else None
            finally:
                thread.is_busy = False
                work.overhead.threads_ns += _now() - t_ns
                if thread.postponed:
                    work.take_postponed()
        except BaseException as error:
            # The program has cut in: the wrapper never learns of the call, and won't end it.
            if len(stack) > depth:
                self.end(stack[depth], None, error)
            raise

    def end(self, call: OpenCall, result: Any, error: BaseException | None = None) -> None:
        """Record that a call returned, or raised an error."""
        t_ns = _now()
        if call.forks != self._forks:  # its begin is in the trace of another process
            return
        work = self._work
        thread = work.thread
        is_told = False
        try:
            try:
                thread.is_busy = True
                call.close(thread.stack)
                with WithoutAny() if count_modes() else without_functions():
                    fields = f'"id":{call.id},"function":{call.spec.name_text}'
                    if error is None:
                        if call.is_observed:
                            self._look("end", call)
                        if call.spec.wants_result:
                            write = self._write_content if call.tells_content else self._write
                            fields += f',"result":{write(result)}'
                        kind = "call_end"
                    else:
                        # No look: what a call has changed that did not come to its end says nothing
                        # about what it does. The next look sees it.
                        fields += f",{_text_of_error(error)}"
                        kind = "call_error"
                    is_told = True
                    self._journal.write_text(kind, f'{fields},"t_ns":{t_ns}')
            except Exception as fault:  # noqa: BLE001  training must not feel our faults
                work.faults.contain(f"the end of {call.spec.name}", fault)
            finally:
                thread.is_busy = False
                work.overhead.threads_ns += _now() - t_ns
                if thread.postponed:
                    work.take_postponed()
        except BaseException as interruption:
            if not is_told:  # to who called, the call has raised
                self.end(call, None, interruption)
            raise

    def forget_abandoned(self) -> None:
        """Forget the calls whose wrapper is gone, and never ended them; as cheap as it can be.

        A signal may come after `begin` is done and before the wrapper knows of the call.
        """
        stack = self._work.thread.stack
        if stack:
            running = set()
            frame: FrameType | None = sys._getframe()  # noqa: SLF001  the documented way to a frame
            while frame is not None:
                if frame.f_code is _BEGIN:  # its wrapper is about to know
                    return
                if frame.f_code is CODE:
                    running.add(id(frame.f_locals.get("call")))
                frame = frame.f_back
            stack[:] = [call for call in stack if id(call) in running]

    def after_fork(self) -> None:
        """Leave the calls that are open to the parent; called in the child."""
        self._work.thread.stack.clear()
        self._forks += 1

    def _begin(  # noqa: PLR0913, PLR0917  what `begin` has found out already
        self,
        spec: FunctionSpec,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        owner: int,
        stack: list[OpenCall],
        t_ns: int,
    ) -> OpenCall:
        if self._steps.is_due:
            self._steps.resume()
        journal = self._journal
        journal.tell_function(spec)
        if args and (spec.is_optimizer_method or spec.point is not None):
            self._meet(args[0], spec)
        caller = sys._getframe(_WRAPPER).f_back  # noqa: SLF001  the documented way to a frame
        src = NOT_USER if caller is None else journal.source_of(caller)
        if src == NOT_USER:
            inherits = stack and not stack[-1].spec.is_of_program
            src = stack[-1].src if inherits else journal.nearest_source(caller)
        is_observed = (
            spec.point is not None
            and self._observer.is_to_look(spec, stack)
            and self._looking.is_allowed(trains=spec.point.trains)
        )
        tells_content = spec.is_loss or (
            spec.is_forward and self._observer.variables.is_model(owner)
        )
        call = OpenCall(self._next_id(), spec, owner, src, is_observed, self._forks, tells_content)
        fields = f'"id":{call.id},"function":{spec.name_text}'
        if stack:
            fields += f',"parent":{stack[-1].id}'
        if src != NOT_USER:
            fields += f',"src":{src}'
        if self.with_stacks:
            fields += f',"stack":{journal.sources_around(caller)}'
        write = self._write_content if tells_content else self._write
        fields += self._arguments(spec, args, kwargs, write)
        if contexts := self._contexts.active():
            fields += f',"ctx":{self._text_of_contexts(contexts)}'
        journal.write_text("call_begin", f'{fields},"t_ns":{t_ns}')
        stack.append(call)  # whatever comes now, it gets its end
        if is_observed:
            self._look("begin", call)
        return call

    def _meet(self, caller: Any, spec: FunctionSpec) -> None:
        """Follow an object of torch whose method changes variables."""
        if spec.is_optimizer_method and issubclass(type(caller), torch.optim.Optimizer):
            if spec.is_optimizer_step:
                self._optimizers.note_step(caller)
            else:
                self._optimizers.add(caller)
        if spec.point is not None:
            self._observer.meet(caller)

    def _look(self, phase: str, call: OpenCall) -> None:
        """Look at variables around a call; a fault costs only the look."""
        if not self._clock.is_recording or is_capturing():
            return
        try:
            self._observer.look(phase, call)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._work.faults.contain(f"the look at variables around {call.spec.name}", error)

    def _arguments(
        self,
        spec: FunctionSpec,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        write: Callable[[Any], str],
    ) -> str:
        fields = f',"self":{self._write(args[0])}' if spec.is_method and args else ""
        if not spec.wants_any_argument:
            return fields
        texts: dict[str, str] = {}
        keys = spec.argument_keys
        for index, value in enumerate(args):
            key = keys[index] if index < len(keys) else spec.key_of(str(index))
            if key:
                texts[key] = write(value)
        wants_all = spec.arguments is None
        for name, value in kwargs.items():
            key = key_text(name) if wants_all else spec.key_of(name)
            if key:
                texts[key] = write(value)
        return f'{fields},"args":{{{",".join([f"{key}:{texts[key]}" for key in texts])}}}'

    def _text_of_contexts(self, contexts: Mapping[str, Any]) -> str:
        known, text = self._last_contexts
        if known is not contexts:
            text = dumps(contexts)
            self._last_contexts = contexts, text
        return text


_BEGIN = Calls.begin.__code__


def _text_of_error(error: BaseException) -> str:
    # Not what the class of the program says that they are, nor what their methods do.
    said = next(iter(_arguments_of(error)), "")
    message = start_of_text(said) if issubclass(type(said), str) else ""
    return f'"exception":{dumps(type_name(type(error)))},"message":{dumps(message)}'
