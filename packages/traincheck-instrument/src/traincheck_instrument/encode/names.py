"""Names of types, functions and modules, read without running code of the program.

A metaclass may define `__module__`, `__hash__` or `__getattribute__`; none of them is asked.
"""

from __future__ import annotations

import sys
import types
import weakref
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from traincheck_instrument.encode.scalars import start_of_text

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_module_of = vars(type)["__module__"].__get__
_qualname_of = vars(type)["__qualname__"].__get__
_names_in = vars(types.ModuleType)["__dict__"].__get__

FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)


class TypeTable(Generic[T]):
    """What was found out about types; keeps none of them alive."""

    def __init__(self, find: Callable[[type], T]) -> None:
        self._find = find
        # By id of the type: hashing it could run code of its metaclass.
        self.known: dict[int, T] = {}
        self._types: dict[int, weakref.ref[type]] = {}

    def __getitem__(self, kind: type) -> T:
        known = self.known.get(id(kind))
        return self._learn(kind) if known is None else known

    def _learn(self, kind: type) -> T:
        key = id(kind)
        self._types[key] = weakref.ref(kind, lambda _: self._forget(key))
        found = self.known[key] = self._find(kind)
        return found

    def _forget(self, key: int) -> None:
        self.known.pop(key, None)
        self._types.pop(key, None)


def type_name(kind: type) -> str:
    """Return the name by which a type is known: the shortest path of packages that offers it.

    `torch.nn.Linear` is defined in `torch.nn.modules.linear`, which no documentation names.
    """
    module, name = _module_of(kind), _qualname_of(kind)
    return _qualified(_package_that_offers(kind, module, name) or module, name)


def function_name(function: Any) -> str:
    """Return the qualified name of one of `FUNCTIONS`."""
    return _qualified(getattr(function, "__module__", None), function.__qualname__)


def method_name(method: types.MethodType) -> str:
    """Return the qualified name of the function that is bound to an object; it may be anything."""
    function = method.__func__
    is_function = any(type(function) is kind for kind in FUNCTIONS)
    return function_name(function) if is_function else type_name(type(function))


def module_name(module: types.ModuleType) -> str:
    """Return the name of a module."""
    name = _names_in(module).get("__name__")
    return start_of_text(name) if type(name) is str else "?"


def _package_that_offers(kind: type, module: Any, name: str) -> str | None:
    """Return the outermost of the packages around a module that has a type of this name."""
    if type(module) is not str:
        return None
    parts = module.split(".")
    for length in range(1, len(parts)):
        path = ".".join(parts[:length])
        package = sys.modules.get(path)
        if issubclass(type(package), types.ModuleType) and _names_in(package).get(name) is kind:
            return path
    return None


def _qualified(module: Any, name: str) -> str:
    return start_of_text(f"{module}.{name}" if type(module) is str else name)
