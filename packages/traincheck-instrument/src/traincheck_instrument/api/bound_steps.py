"""Finds optimizers whose `step` leads past what stands in their class, and follows it there.

A learning-rate scheduler puts a function onto its optimizer that calls the `step` which it found:
not the one that is recorded, if it was made before the recording began, or in an earlier one.
"""

from __future__ import annotations

import functools
import types
import weakref
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from traincheck_instrument.api.namespaces import members_of, mro_of
from traincheck_instrument.api.wrapper import wrap
from traincheck_instrument.variables.optimizers import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.utils.hooks import RemovableHandle

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.recorder.recorder import Recorder

_STEP = "step"
_LOST = "a call of {} that was bound before it was recorded"
_WHY = "the program calls it in a form that was bound before it was recorded"


class BoundSteps:
    """Wraps the step that an optimizer itself holds; each optimizer is asked when it is met.

    `install` and `uninstall` may be called twice.
    """

    def __init__(
        self,
        recorder: Recorder,
        spec_of: Callable[[object], FunctionSpec | None],
        see_class: Callable[[type], None],
        tell: Callable[[], None],
    ) -> None:
        """Wrap nothing yet.

        Args:
            recorder: What the wrappers report to.
            spec_of: Says what is recorded of a function, if a wrapper that is at work is in it.
            see_class: Wraps what is chosen of a class.
            tell: Called when there is something new in `not_observed`.
        """
        self.not_observed: dict[str, str] = {}
        self._recorder = recorder
        self._spec_of = spec_of
        self._see_class = see_class
        self._tell = tell
        # The functions that were put onto optimizers; neither is kept alive.
        self._bound: list[tuple[weakref.ref[Optimizer], weakref.ref[types.FunctionType]]] = []
        self._hook: RemovableHandle | None = None

    def install(self) -> None:
        """Begin to ask."""
        if self._hook is None:
            self._hook = register_optimizer_step_post_hook(self._note_step)
            self._recorder.optimizers.on_met = self._meet

    def uninstall(self) -> None:
        """Put back what the optimizers held, where nobody replaced it since."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        for reference, made in self._bound:
            optimizer = reference()
            held = None if optimizer is None else fields_of(optimizer).get(_STEP)
            function = held.__func__ if type(held) is types.MethodType else held
            if function is not None and function is made():
                fields_of(optimizer)[_STEP] = vars(function)["__wrapped__"]
        self._bound.clear()

    def _note_step(self, optimizer: Optimizer, *_: object) -> None:
        """Take note that an optimizer has stepped: maybe nothing saw it begin."""
        recorder = self._recorder
        if is_compiling() or not recorder.clock.is_recording or recorder.thread.is_busy:
            return
        try:
            if not recorder.optimizers.has_stepped(optimizer):
                self._note_loss(optimizer)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            recorder.faults.contain("the step of an optimizer", error)

    def _note_loss(self, optimizer: Optimizer) -> None:
        optimizers = self._recorder.optimizers
        before = self._spec_of_step(optimizer)
        optimizers.add(optimizer)
        spec = self._spec_of_step(optimizer)
        optimizers.note_step(optimizer)  # told once
        if spec is None:
            return
        self._recorder.tell_loss(_LOST.format(spec.name))
        is_bound = any(reference() is optimizer for reference, _ in self._bound)
        if before is not None and not is_bound:
            self.not_observed[spec.name] = _WHY
            self._tell()

    def _meet(self, optimizer: Optimizer) -> None:
        """Follow an optimizer to the step that it holds."""
        try:
            self._see_class(type(optimizer))
            spec = self._spec_of_step(optimizer)
            if spec is not None and not self._recorder.optimizers.has_stepped(optimizer):
                self._bind(optimizer, spec)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._recorder.faults.contain("the step of an optimizer", error)

    def _bind(self, optimizer: Optimizer, spec: FunctionSpec) -> None:
        fields = fields_of(optimizer)
        held = fields.get(_STEP)
        made: Any
        if type(held) is types.FunctionType:
            made = fields[_STEP] = self._reported(held, optimizer, spec)
        elif (
            type(held) is types.MethodType
            and held.__self__ is optimizer
            and type(held.__func__) is types.FunctionType
        ):
            made = wrap(held.__func__, spec, self._recorder)
            made.__wrapped__ = held
            fields[_STEP] = types.MethodType(made, optimizer)
        else:
            return
        self._bound.append((weakref.ref(optimizer), weakref.ref(made)))

    def _reported(
        self, held: types.FunctionType, optimizer: Optimizer, spec: FunctionSpec
    ) -> Callable[..., Any]:
        """Return a function that does what `held` does, and reports it as a step."""
        reference = weakref.ref(optimizer)  # which would otherwise hold itself

        def step_of(_: Optimizer | None, *args: Any, **kwargs: Any) -> Any:
            return held(*args, **kwargs)

        reported = wrap(step_of, spec, self._recorder)

        @functools.wraps(held)
        def step(*args: Any, **kwargs: Any) -> Any:
            return reported(reference(), *args, **kwargs)

        return step

    def _spec_of_step(self, optimizer: Optimizer) -> FunctionSpec | None:
        """Return what is recorded of the step of an optimizer's class."""
        for kind in mro_of(type(optimizer)):
            if _STEP in members_of(kind):
                return self._spec_of(members_of(kind)[_STEP])
        return None
