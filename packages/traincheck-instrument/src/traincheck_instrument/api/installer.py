"""Puts wrappers in place of functions, and takes them away again."""

from __future__ import annotations

import functools
import sys
import types
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import attrs
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from traincheck_instrument.api.births import Births
from traincheck_instrument.api.bound_steps import BoundSteps
from traincheck_instrument.api.callables import held_like, why_not
from traincheck_instrument.api.catalogue import ApiFunction, Catalogue
from traincheck_instrument.api.compiled import Compilations
from traincheck_instrument.api.imports import ImportFollower
from traincheck_instrument.api.namespaces import InClass, qualname_of
from traincheck_instrument.api.places import find_places
from traincheck_instrument.api.readers import readers
from traincheck_instrument.api.replacements import Replacements
from traincheck_instrument.api.tables import fill_tables
from traincheck_instrument.api.wrapper import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from torch.utils.hooks import RemovableHandle

    from traincheck_instrument.api.choice import Choice
    from traincheck_instrument.api.namespaces import Place
    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.recorder.recorder import Recorder

_SUSPENDED = "wrappers are suspended while something is compiled or traced: in all threads"


class ApiInstaller:
    """The wrappers of this process. `install` and `uninstall` may be called twice."""

    def __init__(self, recorder: Recorder, choice: Choice, on_change: Callable[[], None]) -> None:
        """Wrap nothing yet.

        Args:
            recorder: What the wrappers report to.
            choice: What is recorded.
            on_change: Called when what is recorded, or can't be, has changed.
        """
        self._recorder = recorder
        self._choice = choice
        self._on_change = on_change
        self._catalogue = Catalogue(choice.scope)
        self._replaced = Replacements(lambda: recorder.leave_out(_SUSPENDED))
        self._compilations = Compilations(self._replaced.suspended, on_change, recorder.faults)
        self._follower: ImportFollower | None = None
        self._read: set[str] = set()  # names of modules
        self._specs: dict[str, FunctionSpec] = {}
        # A class of the program that ends takes the wrappers in it along.
        self._wrappers: WeakKeyDictionary[Callable[..., Any], FunctionSpec] = WeakKeyDictionary()
        self._bound = BoundSteps(recorder, self._spec_in, self._see_class, on_change)
        self._told = 0  # of them
        self._hook: RemovableHandle | None = None
        self.not_wrapped: dict[str, str] = {}

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that are recorded."""
        return tuple(sorted(self._specs))

    @property
    def observed(self) -> tuple[str, ...]:
        """Those at whose begin and end the variables are looked at."""
        return tuple(name for name in self.functions if self._specs[name].point is not None)

    @property
    def not_observed(self) -> dict[str, str]:
        """What else is not recorded, and why."""
        return (
            self._choice.not_observed() | self._compilations.not_observed | self._bound.not_observed
        )

    def install(self) -> None:
        """Wrap what is chosen, now and whenever modules are imported."""
        if self._replaced:
            return
        fill_tables()
        self._catalogue = Catalogue(self._choice.scope)
        self._read.clear()
        self._follower = ImportFollower.follow(self._catalogue.scope.roots)
        self._follower.on_complete = self._see_imports
        self._follower.around = self._around
        self._wrap_new()
        self._told = len(self._specs)
        self._hook = register_optimizer_step_post_hook(self._recorder.optimizer_stepped)
        self._recorder.on_tracked = self._see_model
        self._bound.install()
        births = Births(self._see_class)
        for make in (births.wrappers, self._followers, self._readers, self._compilations.wrappers):
            for place, replacement in list(make()):
                self._replaced.put(place, replacement)

    def uninstall(self) -> None:
        """Put back the very objects that were replaced, where nobody replaced them since."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        if self._follower is not None:
            self._follower.stop()
            self._follower = None
        self._bound.uninstall()
        self._replaced.put_back()
        self._wrappers.clear()

    def tell_news(self) -> None:
        """Have it told if functions were wrapped since that was told last."""
        if self._told != len(self._specs):
            self._told = len(self._specs)
            self._on_change()

    def _wrap_new(self) -> None:
        """Wrap what is chosen of the modules that were not read."""
        follower = self._follower
        modules = {
            name: module
            for name, module in list(sys.modules.items())
            if name not in self._read and issubclass(type(module), types.ModuleType)
        }
        complete = {
            name: module
            for name, module in modules.items()
            if follower is None or follower.is_complete(name)
        }
        self._read.update(complete)
        chosen = self._chosen(self._catalogue.read(complete))
        wanted = {id(function.original) for function, _ in chosen if function.place is None}
        places = find_places(wanted, modules.values(), self._catalogue.classes) if wanted else {}
        for function, spec in chosen:
            place = function.place
            held = places[id(function.original)] if place is None else [place]
            wrapper = self._wrapper(function, spec)
            put = [self._replaced.put(one, held_like(one.get(), wrapper)) for one in held]
            self._note(function, spec, put)

    def _chosen(
        self, functions: Iterable[ApiFunction], *, are_of_model: bool = False
    ) -> list[tuple[ApiFunction, FunctionSpec]]:
        """Return what is to be recorded of functions; tell of those that would say nothing."""
        chosen = []
        for function in functions:
            spec = self._choice.spec(function, is_of_model=are_of_model)
            if spec is None:
                continue
            if (reason := why_not(function.original)) is not None:
                self.not_wrapped[function.name] = reason
            else:
                chosen.append((function, spec))
        return chosen

    def _wrapper(self, function: ApiFunction, spec: FunctionSpec) -> Callable[..., Any]:
        wrapper = wrap(function.original, spec, self._recorder)
        if not isinstance(function.original, types.FunctionType):
            _name_by_place(wrapper, function)
        self._wrappers[wrapper] = spec
        return wrapper

    def _spec_in(self, function: Any) -> FunctionSpec | None:
        """Return what is recorded of a function, if it, or one that it wraps, is a wrapper of ours.

        A wrapper of an earlier recording may be in it, too.
        """
        while type(function) is types.FunctionType:
            if function in self._wrappers:
                return self._wrappers[function]
            function = getattr(function, "__wrapped__", None)
        return None

    def _note(
        self, function: ApiFunction, spec: FunctionSpec, refusals: Iterable[str | None]
    ) -> None:
        """Take note that a function is wrapped, unless one of its places refused."""
        reason = next((one for one in refusals if one is not None), None)
        if reason is None:
            self._specs[spec.name] = spec
        else:
            self.not_wrapped[function.name] = reason

    def _around(self, module: str) -> AbstractContextManager[None]:
        """Let the machinery of torch make its tables of the functions themselves."""
        is_machinery = self._catalogue.scope.is_closed(module)
        return self._replaced.suspended() if is_machinery else nullcontext()

    def _see_imports(self, ran: Iterable[str]) -> None:
        """Wrap what is chosen of modules that were imported."""
        try:
            self._read.difference_update(ran)
            self._wrap_new()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._recorder.faults.contain("the import of a module", error)

    def _see_class(self, kind: type) -> None:
        """Wrap what is chosen of a class outside of the packages, such as one of the program."""
        if not self._replaced:  # torch has wrapped in turn what told of the class
            return
        try:
            self._wrap_in_class(self._chosen(self._catalogue.overrides(kind)))
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._recorder.faults.contain("the first object of a class", error)

    def _see_model(self, kind: type) -> None:
        """Wrap what a tracked model of a class of the program does when it is called."""
        if not self._replaced:
            return
        called = [
            function
            for function in self._catalogue.overrides(kind)
            if function.place is not None and function.place.name == "forward"
        ]
        self._wrap_in_class(self._chosen(called, are_of_model=True))

    def _wrap_in_class(self, chosen: Iterable[tuple[ApiFunction, FunctionSpec]]) -> None:
        for function, chosen_spec in chosen:
            if function.place is not None and self._spec_in(function.original) is None:
                spec = attrs.evolve(chosen_spec, is_of_program=True)
                wrapper = self._wrapper(function, spec)
                put = self._replaced.wrap_in_class(function.place, wrapper)
                self._note(function, spec, [put])

    def _readers(self) -> Iterable[tuple[Place, Callable[..., Any]]]:
        return readers(self._replaced.suspended)

    def _followers(self) -> Iterable[tuple[Place, Callable[..., Any]]]:
        """See each optimizer when it is made."""
        place = InClass(Optimizer, "_patch_step_function")
        original, recorder = place.get(), self._recorder

        @functools.wraps(original)
        def patch_step_function(optimizer: Optimizer) -> None:
            try:
                if self._replaced:  # otherwise torch has wrapped this function in turn
                    recorder.optimizers.add(optimizer)
            except Exception as error:  # noqa: BLE001  training must not feel our faults
                recorder.faults.contain("the construction of an optimizer", error)
            original(optimizer)

        yield place, patch_step_function


def _name_by_place(wrapper: Callable[..., Any], function: ApiFunction) -> None:
    """Let a builtin's wrapper say where it is: it is pickled by that name."""
    module, _, name = function.name.rpartition(".")
    if function.place is not None:
        module, name = "torch", f"{qualname_of(function.place.owner)}.{name}"
    wrapper.__module__, wrapper.__qualname__ = module, name
