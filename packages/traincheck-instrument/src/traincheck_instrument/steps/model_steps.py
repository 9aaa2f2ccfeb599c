"""Counts steps where no mark stands: in the loop of a trainer that is not part of the script.

A step begins where a tracked model is first called to train after an optimizer has stepped. Where
marks begin the steps, but none stands at the evaluation, the calls of models tell that alone.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_post_hook

from traincheck_instrument.api.namespaces import InClass
from traincheck_instrument.api.replacements import Replacements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch.utils.hooks import RemovableHandle

    from traincheck_instrument.recorder.faults import Faults
    from traincheck_instrument.steps.steps import Steps

_Module: TypeAlias = torch.nn.Module

# Not what classes of the program say that an attribute is.
_attributes_of = vars(torch.nn.Module)["__dict__"].__get__


class ModelSteps:
    """Watches the calls of tracked models, until a mark of a step is met.

    Nothing is put onto the modules of the program: the method by which every module is called is
    replaced by one that asks two flags. `install` and `uninstall` may be called twice.
    """

    def __init__(self, steps: Steps, faults: Faults, on_first: Callable[[], None]) -> None:
        """Count steps.

        Args:
            steps: What is told where steps begin.
            faults: Where own faults are told.
            on_first: Called when the first step is about to begin.
        """
        self._steps = steps
        self._faults = faults
        self._on_first = on_first
        self._roots: dict[int, weakref.ref[_Module]] = {}
        self._trained: weakref.ref[_Module] | None = None  # the model whose call began the step
        # Of each module in a tracked model: itself, and that model.
        self._parts: dict[int, tuple[weakref.ref[_Module], weakref.ref[_Module]]] = {}
        self._parts_are_old = False
        self._optimizer: weakref.ref[torch.optim.Optimizer] | None = None  # the first that stepped
        self._is_waiting = True  # for the call that begins the next step
        self._is_alert = True  # a call in training mode may mean something
        self._is_evaluating = False
        self._has_begun = False
        self._evaluation_is_marked = False
        self._marked_passes = 0
        self._trains_in_eval_mode = False
        self._follows_marks = False
        self._has_stepped = False  # an optimizer, since the last mark
        self._replaced = Replacements()
        self._is_at_work = False
        self._hook: RemovableHandle | None = None

    def install(self) -> None:
        """Begin to watch."""
        if self._replaced:
            return
        place = InClass(_Module, "__call__")
        original = place.get()

        @functools.wraps(original)
        def call(module: _Module, *args: Any, **kwargs: Any) -> Any:
            # The compiler knows the first answer, and leaves out all that follows. The program may
            # have wrapped this function in turn, which then stays.
            if (
                not is_compiling()
                and self._is_at_work
                and (self._is_alert or not _attributes_of(module).get("training", True))
            ):
                self._note_call(module)
            return original(module, *args, **kwargs)

        self._replaced.put(place, call)
        self._is_at_work = True
        self._hook = register_optimizer_step_post_hook(self._note_optimizer_step)

    def uninstall(self) -> None:
        """Watch no longer."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        self._replaced.put_back()
        self._is_at_work = False

    @property
    def is_at_work(self) -> bool:
        """Whether steps are counted here."""
        return self._is_at_work

    @property
    def follows_marks(self) -> bool:
        """Whether marks begin the steps, and only evaluation is told here."""
        return self._follows_marks

    def follow_marks(self) -> None:
        """Leave the steps to the marks of the program."""
        self._follows_marks = True

    def note_mark(self) -> None:
        """Take note that a mark is about to begin a step."""
        self._is_waiting = self._is_alert = self._parts_are_old = True
        self._is_evaluating = self._has_stepped = False

    def end_evaluation(self) -> None:
        """End what calls have begun beside marked steps: a mark is about to enter a stage."""
        if self._follows_marks and self._is_evaluating:
            self._is_evaluating = False
            self._steps.leave_evaluation("training")

    def track(self, model: Any) -> None:
        """Watch a model, too, from now on."""
        if issubclass(type(model), torch.nn.Module):  # not what the object says of itself
            key = id(model)
            self._roots[key] = weakref.ref(model, lambda _: self._forget(key))
            self._parts_are_old = True

    def _forget(self, key: int) -> None:
        self._roots.pop(key, None)
        self._parts_are_old = True

    def mark_evaluation(self) -> None:
        """Take note that the program marks its evaluation: what a model does says nothing then."""
        self._evaluation_is_marked = True

    @contextmanager
    def marked_evaluation(self) -> Iterator[None]:
        """Surround a pass of evaluation that is marked."""
        self._marked_passes += 1
        try:
            yield
        finally:
            self._marked_passes -= 1

    def _note_optimizer_step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        self._has_stepped = True
        first = None if self._optimizer is None else self._optimizer()
        if first is None:
            first = optimizer
            self._optimizer = weakref.ref(optimizer)
        if first is optimizer:
            # No call in training mode came before: the model is trained in evaluation mode.
            self._trains_in_eval_mode |= self._is_waiting and self._is_evaluating
            self._is_waiting = self._is_alert = self._parts_are_old = True

    def _note_call(self, module: _Module) -> None:
        if self._marked_passes:
            return
        try:
            model = self._model_of(module)
            if model is not None:
                self._follow(model, is_whole=module is model)
            elif self._is_waiting:
                for wrapped in self._wrapped_by(module):
                    self._train(wrapped)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._faults.contain("the counting of steps", error)

    def _follow(self, model: _Module, *, is_whole: bool) -> None:
        """Begin what the call of a tracked model, or of a part of it, says."""
        if self._is_to_train(model):
            self._train(model)
        elif not (self._evaluation_is_marked or self._helps_to_train(model)):
            if not self._is_evaluating:
                self._is_evaluating = self._is_alert = True
                self._steps.enter_stage("evaluation")
            if is_whole:
                self._steps.start_eval_step()

    def _train(self, model: _Module) -> None:
        """Begin the next step if it is due, at a call that is to train."""
        if not (self._is_to_train(model) and torch.is_grad_enabled()):
            return
        if self._is_waiting:
            self._trained = weakref.ref(model)
        if self._is_waiting and not self._follows_marks:
            if not self._has_begun:
                self._has_begun = True
                self._on_first()
            self._steps.start_step()
        elif self._is_evaluating:
            self._steps.leave_evaluation("training")
        self._is_waiting = self._is_evaluating = self._is_alert = False

    def _is_to_train(self, model: _Module) -> bool:
        return self._trains_in_eval_mode or bool(_attributes_of(model).get("training", True))

    def _helps_to_train(self, model: _Module) -> bool:
        """Whether a call in evaluation mode is a part of the step, as that of a teacher.

        It is one of another model than began the step, before the optimizer has stepped. Where
        marks begin the steps, what comes before the optimizer's is that in any case: a model may
        label what it is trained on.
        """
        if self._follows_marks:
            trained = None if self._trained is None else self._trained()
            return not self._has_stepped or trained is not model
        return not self._is_waiting and self._trained is not None and self._trained() is not model

    def _model_of(self, module: _Module) -> _Module | None:
        """Return the tracked model that a module is, or is a part of."""
        found = self._parts.get(id(module))
        if (found is None or found[0]() is not module) and self._parts_are_old:
            self._find_parts()
            found = self._parts.get(id(module))
        return None if found is None or found[0]() is not module else found[1]()

    def _wrapped_by(self, module: _Module) -> Iterator[_Module]:
        """Yield the tracked models right inside a module, as a compiled one has it."""
        for child in _parts_of(module):
            known = self._roots.get(id(child))
            if known is not None and known() is child:
                yield child

    def _find_parts(self) -> None:
        """Walk through the tracked models; of those inside one another the outer ones count."""
        self._parts_are_old = False
        self._parts.clear()
        for root in reversed(list(self._roots.values())):
            model = root()
            waiting = [] if model is None else [model]
            while waiting:
                module = waiting.pop()
                if id(module) not in self._parts:
                    self._parts[id(module)] = (weakref.ref(module), root)
                    waiting += _parts_of(module)


def _parts_of(module: _Module) -> list[_Module]:
    parts = _attributes_of(module).get("_modules") or {}
    return [part for part in parts.values() if part is not None]
