"""Puts wrappers in place of public functions, and takes them away again."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from traincheck_instrument.api.catalogue import ApiFunction, Place, find_api
from traincheck_instrument.api.observation import observation_of
from traincheck_instrument.api.spec import FunctionSpec
from traincheck_instrument.api.wrapper import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torch.utils.hooks import RemovableHandle

    from traincheck_instrument.recorder import Recorder
    from traincheck_trace_schema.plan import FunctionPlan, Plan

_OPTIMIZER_METHODS = ("step", "zero_grad", "load_state_dict")


class ApiInstaller:
    """The wrappers of this process. `install` and `uninstall` may be called twice."""

    def __init__(self, recorder: Recorder, plan: Plan) -> None:
        self._recorder = recorder
        self._plan = plan
        self._api = find_api(torch.__name__)
        self._replaced: list[tuple[Place, Any, Any]] = []
        self._wrapped: set[int] = set()
        self._hook: RemovableHandle | None = None
        self.functions: tuple[str, ...] = ()
        self.not_wrapped: dict[str, str] = {}
        self.observed: tuple[str, ...] = ()

    def install(self) -> None:
        """Wrap what the plan names, or everything public if it names nothing."""
        if self._replaced:
            return
        specs = [
            (function, spec)
            for function in self._api.functions
            if (spec := self._spec(function)) is not None
        ]
        for function, spec in specs:
            self._wrap(function, spec)
        self.functions = tuple(spec.name for _, spec in specs)
        self.observed = tuple(spec.name for _, spec in specs if spec.observe_as is not None)
        self._hook = register_optimizer_step_post_hook(self._recorder.optimizer_stepped)
        self._follow_optimizers()
        self._keep_scripting()

    def uninstall(self) -> None:
        """Put back the very objects that were replaced, where nobody replaced them since."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        self._put_back()
        self._replaced.clear()
        self._wrapped.clear()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Have the original functions in place for a while: for what reads their source."""
        self._put_back()
        try:
            yield
        finally:
            for place, original, wrapper in self._replaced:
                if place.get() is original:
                    place.set(wrapper)

    def _put_back(self) -> None:
        for place, original, wrapper in reversed(self._replaced):
            if place.get() is wrapper:
                place.set(original)

    def _wrap(self, function: ApiFunction, spec: FunctionSpec) -> None:
        wrapper = wrap(function.original, spec, self._recorder)
        self._wrapped.add(id(wrapper))
        for place in function.places:
            if (reason := self._replace(place, wrapper)) is not None:
                self.not_wrapped[function.name] = reason

    def _replace(self, place: Place, wrapper: Callable[..., Any]) -> str | None:
        """Put a wrapper in place; return why it can't be done, if so."""
        original = place.get()
        try:
            place.set(wrapper)
        except (AttributeError, TypeError) as error:
            return str(error)
        self._replaced.append((place, original, wrapper))
        return None

    def _follow_optimizers(self) -> None:
        """See each optimizer when it is made, and wrap the methods of classes that users write."""
        # Each construction of an optimizer calls this.
        original = Optimizer._patch_step_function  # noqa: SLF001
        see = self._see_optimizer

        def patch_step_function(optimizer: Optimizer) -> None:
            see(optimizer)
            original(optimizer)

        place = Place(owner=Optimizer, attribute="_patch_step_function")
        self._replace(place, patch_step_function)

    def _keep_scripting(self) -> None:
        """Let torch.jit.script see the functions themselves: it compiles their source."""
        original = torch.jit.script

        @functools.wraps(original)
        def script(*args: Any, **kwargs: Any) -> Any:
            with self.suspended():
                return original(*args, **kwargs)

        self._replace(Place(owner=torch.jit, attribute="script"), script)

    def _see_optimizer(self, optimizer: Optimizer) -> None:
        recorder = self._recorder
        try:
            recorder.optimizers.add(optimizer)
            for attribute in _OPTIMIZER_METHODS:
                function = self._api.override(type(optimizer), attribute)
                if function is None or self._is_wrapped(function.original):
                    continue
                if (spec := self._spec(function)) is not None:
                    self._wrap(function, spec)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            recorder.faults.contain("the construction of an optimizer", error)

    def _is_wrapped(self, function: Callable[..., Any] | None) -> bool:
        """Whether `function` is a wrapper of ours, or one that torch put on top of it."""
        while function is not None:
            if id(function) in self._wrapped:
                return True
            function = getattr(function, "__wrapped__", None)
        return False

    def _spec(self, function: ApiFunction) -> FunctionSpec | None:
        """Say what to record of a function; None: nothing."""
        names = function.names
        plan = self._plan
        asked = None if plan.functions is None else frozenset(plan.observe)
        observe_as, attributes = observation_of(names, asked)
        chosen = _chosen(plan.functions, names)
        if chosen is None and plan.functions is not None and observe_as is None:
            return None
        return FunctionSpec(
            name=function.name,
            bases=function.bases,
            aliases=function.aliases,
            parameters=function.parameters,
            is_method=function.is_method,
            is_optimizer_method="torch.optim.Optimizer" in {n.rpartition(".")[0] for n in names},
            arguments=_arguments(plan.functions, chosen),
            wants_result=plan.functions is None or any(one.result for one in chosen or ()),
            observe_as=observe_as,
            observe_attributes=attributes,
        )


def _chosen(
    functions: Iterable[FunctionPlan] | None, names: tuple[str, ...]
) -> list[FunctionPlan] | None:
    """Return the entries of a plan that speak about a function with these names."""
    chosen = [entry for entry in functions or () if entry.name in names]
    return chosen or None


def _arguments(
    functions: Iterable[FunctionPlan] | None, chosen: list[FunctionPlan] | None
) -> frozenset[str] | None:
    """Return the arguments to record; None: all."""
    if functions is None or any(entry.arguments == "all" for entry in chosen or ()):
        return None
    return frozenset(name for entry in chosen or () for name in entry.arguments)
