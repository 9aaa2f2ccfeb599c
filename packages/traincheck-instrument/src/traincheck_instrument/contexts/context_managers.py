"""Sees which context managers of the recorded packages the program enters, with their arguments.

Those that a generator makes (`contextlib.contextmanager`), as `DistributedDataParallel.no_sync` and
`sdpa_kernel` are, all pass through one class of the standard library, whoever imported them and
whenever; it knows function and arguments until the context is entered.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling

from traincheck_instrument.current import Current
from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.recorder.modes import without_modes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traincheck_instrument.contexts.contexts import Contexts
    from traincheck_instrument.contexts.entered import OpenContext
    from traincheck_instrument.encode.scalars import Json
    from traincheck_instrument.recorder.faults import Faults

_Manager: Any = contextlib._GeneratorContextManager  # noqa: SLF001  there is no other way to all of them
_enter, _leave = vars(_Manager)["__enter__"], vars(_Manager)["__exit__"]
_KEY = "__traincheck__"  # of an entered manager: what was noted

# They hold gradients back, and choose precisions, by functions of their own.
_FRAMEWORKS = frozenset(("accelerate", "deepspeed", "lightning", "megatron", "transformer_engine"))
_TOOLS = frozenset(
    {
        "torch.compiler",
        "torch.cuda.nvtx",
        "torch.cuda.profiler",
        "torch.export",
        "torch.fx",
        "torch.jit",
        "torch.onnx",
        "torch.package",
        "torch.profiler",
        "torch.serialization",
        "torch.testing",
    }
)


class ContextManagers:
    """Follows context managers. `install` and `uninstall` may be called twice."""

    def __init__(self, contexts: Contexts, faults: Faults, packages: Iterable[str]) -> None:
        self._contexts = contexts
        self._faults = faults
        self._packages = _FRAMEWORKS.union(package.partition(".")[0] for package in packages)
        self._names: dict[tuple[str, str], str | None] = {}  # by module and name of the function

    def install(self) -> None:
        """Follow what is entered and left from now on, if nobody else does so already."""
        _replace("__enter__", _enter, _enter_following)
        _replace("__exit__", _leave, _leave_following)

    def uninstall(self) -> None:
        """Follow nothing any more."""
        _replace("__enter__", _enter_following, _enter)
        _replace("__exit__", _leave_following, _leave)

    def follows(self, function: Any) -> bool:
        """Whether a function may make a context that is told; most in a step do not."""
        if type(function) is not FunctionType or type(function.__module__) is not str:
            return False
        return self._names.get((function.__module__, function.__qualname__), "") is not None

    def prepare(
        self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> OpenContext | None:
        """Note the arguments now: the manager forgets them when it is entered."""
        try:
            key = function.__module__, function.__qualname__
            name = self._names[key] if key in self._names else self._learn(key)
            if name is None:
                return None
            with without_modes():
                arguments = self._arguments(function, args, kwargs)
            return self._contexts.entered.prepare(name, arguments)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._faults.contain("the begin of a context", error)
            return None

    def _learn(self, key: tuple[str, str]) -> str | None:
        """Return the name of the context that a function makes; None: it is not told."""
        module, function = key
        name = function.rpartition(".")[2]
        is_told = (
            module.partition(".")[0] in self._packages
            and self._contexts.wants(name)
            and _is_public(module, function)
        )
        self._names[key] = name if is_told else None
        return self._names[key]

    def _arguments(
        self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Json]:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        first = 1 if names[:1] in (("self",), ("cls",)) else 0
        told = (*zip(names[first:], args[first:], strict=False), *kwargs.items())
        return {start_of_text(name): self._contexts.encode(value) for name, value in told}


def _is_public(module: str, function: str) -> bool:
    """Whether a user may enter it by a documented name, to do something else than look at it."""
    parts = module.split(".")
    if any(part.startswith(("_", "<")) for part in function.split(".")):
        return False
    if not _TOOLS.isdisjoint(".".join(parts[:end]) for end in range(1, len(parts) + 1)):
        return False
    private = next((index for index, part in enumerate(parts) if part.startswith("_")), None)
    return private is None or _is_offered(".".join(parts[:private]), function)


def _is_offered(module: str, function: str) -> bool:
    """Whether a module offers what a private one below it defines."""
    offering = sys.modules.get(module)
    return isinstance(offering, ModuleType) and function.partition(".")[0] in vars(offering)


def _replace(method: str, expected: Callable[..., Any], new: Callable[..., Any]) -> None:
    if vars(_Manager).get(method) is expected:
        setattr(_Manager, method, new)


# No closures: the compiler, which traces through these two, could not look into them.


@functools.wraps(_enter)
def _enter_following(manager: Any) -> Any:
    # The compiler knows the first answer, and leaves out all that follows.
    if is_compiling() or type(manager) is not _Manager or Current.session is None:
        return _enter(manager)
    managers = Current.session.context_managers
    function = vars(manager).get("func")  # not there if it was entered before
    if not managers.follows(function):
        return _enter(manager)
    context = managers.prepare(function, manager.args, manager.kwds)
    entered = _enter(manager)
    if context is not None:
        context.enter()
        vars(manager)[_KEY] = context
    return entered


@functools.wraps(_leave)
def _leave_following(manager: Any, *error: Any) -> Any:
    if is_compiling() or _KEY not in vars(manager):
        return _leave(manager, *error)
    try:
        return _leave(manager, *error)
    finally:
        vars(manager).pop(_KEY).leave()
