"""Finds the functions of packages: what a user could call, under its documented name."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from traincheck_instrument.api.callables import (
    Function,
    defaults_of,
    function_in,
    parameter_names,
)
from traincheck_instrument.api.namespaces import (
    InClass,
    defined_in,
    members_of,
    mro_of,
    names_in,
    qualname_of,
)
from traincheck_instrument.api.scope import Scope, is_public
from traincheck_instrument.api.wrapper import is_wrapper
from traincheck_instrument.encode.names import function_name, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_Offer: TypeAlias = tuple[str, Any]  # what a module offers: its path, and itself

_CORE = "torch._C"  # its own functions are the dispatcher's, those of its submodules operators


@attrs.frozen(kw_only=True)
class ApiFunction:
    """A function: its names, and where it is held.

    A method has one place, in a class. From how many places a function of a module is reached, is
    found when it is wrapped.
    """

    name: str  # the shortest public path
    original: Function
    bases: tuple[str, ...]  # the public methods that it overrides
    aliases: tuple[str, ...]
    is_method: bool
    place: InClass | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name by which one may speak of this function."""
        return (self.name, *self.bases, *self.aliases)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the positional parameters, as far as they are known."""
        return parameter_names(self.original)

    @property
    def defaults(self) -> dict[str, Any]:
        """What parameters are that a call leaves out, as far as that is known."""
        return defaults_of(self.original)


@attrs.frozen(kw_only=True)
class _Class:
    """A class that modules offer."""

    kind: type
    paths: tuple[str, ...]  # shortest first

    @property
    def is_public(self) -> bool:
        return is_public(self.paths[0])


class Catalogue:
    """The functions and classes of the packages of a scope, as far as modules were read."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._functions: set[int] = set()  # ids; the modules keep them
        self._classes: dict[int, _Class] = {}  # by id: hashing could run code of a metaclass

    def read(self, modules: Mapping[str, types.ModuleType]) -> list[ApiFunction]:
        """Find what modules offer that was not known before, in the order of the names."""
        offers = list(self._offers(modules))
        classes = self._new_classes(offers)
        functions = [*self._module_functions(offers), *self._methods(classes)]
        return sorted(functions, key=lambda function: function.name)

    @property
    def classes(self) -> Iterator[type]:
        """The classes that were found."""
        return (known.kind for known in self._classes.values())

    def overrides(self, kind: type) -> Iterator[ApiFunction]:
        """Yield the methods of a class outside of the packages that stand for public ones."""
        bases = [base for base in mro_of(kind) if id(base) in self._classes]
        if not bases or bases[0] is kind:
            return
        attributes = {name for base in bases for name in members_of(base) if name[:2] != "__"}
        for attribute in sorted(attributes):
            definer = _definer(kind, attribute)
            if (
                definer is None
                or id(definer) in self._classes
                or self.scope.is_closed(defined_in(definer))
            ):
                continue
            overridden = self._overridden(kind, attribute)
            if overridden and self.scope.takes(overridden[0]):
                place = InClass(definer, attribute)
                name = f"{type_name(definer)}.{attribute}"
                yield from self._method(kind, definer, place, [name])

    def _offers(self, modules: Mapping[str, types.ModuleType]) -> Iterator[_Offer]:
        """Yield what the modules offer: under public paths first, and under shorter ones first."""
        walked = [
            name
            for name, module in modules.items()
            if self.scope.walks(name) and issubclass(type(module), types.ModuleType)
        ]
        for module in sorted(walked, key=lambda name: (not is_public(name), name.count("."), name)):
            names = names_in(modules[module])
            offered = _offered(names)
            if self.scope.with_private:
                hidden = names.keys() - offered
                offered += [name for name in hidden if _is_defined_in(module, names[name])]
            for name in sorted(offered):
                yield f"{module}.{name}", names.get(name)

    def _new_classes(self, offers: Iterable[_Offer]) -> list[_Class]:
        found: dict[int, tuple[type, list[str]]] = {}
        for path, held in offers:
            # isinstance() would ask objects that answer with a deprecation warning.
            if not issubclass(type(held), type) or id(held) in self._classes:
                continue
            if self.scope.takes_class(defined_in(held)):
                found.setdefault(id(held), (held, []))[1].append(path)
        new = {key: _Class(kind=kind, paths=tuple(paths)) for key, (kind, paths) in found.items()}
        self._classes |= new
        return [*new.values()]

    def _module_functions(self, offers: Iterable[_Offer]) -> Iterator[ApiFunction]:
        found: dict[int, tuple[Function, list[str]]] = {}
        for path, held in offers:
            function = function_in(held, with_builtins=self.scope.takes_builtin(path))
            if function is None or function is not held or not self._is_new(function):
                continue
            if self.scope.takes(path):
                found.setdefault(id(function), (function, []))[1].append(path)
        self._functions.update(found)
        for original, paths in found.values():
            yield ApiFunction(
                name=paths[0],
                original=original,
                bases=(),
                aliases=_aliases(original, paths),
                is_method=False,
            )

    def _is_new(self, function: Any) -> bool:
        """Whether a function is of the packages, and was not known."""
        if id(function) in self._functions or is_wrapper(function):
            return False
        module = getattr(function, "__module__", None)
        if type(module) is not str:
            return False
        if type(function) is types.BuiltinFunctionType and module.partition(".")[0] == "torch":
            owner: Any = function.__self__
            is_of_module = issubclass(type(owner), types.ModuleType)
            return owner is None or (is_of_module and names_in(owner).get("__name__") != _CORE)
        return self.scope.has(module)

    def _methods(self, classes: Iterable[_Class]) -> Iterator[ApiFunction]:
        for known in classes:
            is_manager = any("__enter__" in members_of(base) for base in mro_of(known.kind))
            for attribute, definer in [*self._own(known.kind), *self._adopted(known)]:
                if self.scope.takes_method(known.paths[0], attribute, of_manager=is_manager):
                    names = [f"{path}.{attribute}" for path in known.paths]
                    place = InClass(known.kind, attribute)
                    yield from self._method(known.kind, definer, place, names)

    def _own(self, kind: type) -> Iterator[tuple[str, type]]:
        """Yield the methods that a class defines, rather than being given another's function."""
        for attribute, held in members_of(kind).items():
            function = self._function_in(held)
            if function is not None and _is_defined_by(kind, attribute, function):
                yield attribute, kind

    def _adopted(self, known: _Class) -> Iterator[tuple[str, type]]:
        """Yield the inherited methods that are documented as a class's own, with who defines them.

        Those are what it has from a class that has no public path, as `BatchNorm2d.forward`, and
        those of a public one that overrides what is done differently everywhere, as `AdamW.step`.
        """
        seen = set(members_of(known.kind))
        for base in mro_of(known.kind)[1:] if known.is_public else ():
            members = {name: held for name, held in members_of(base).items() if name not in seen}
            seen.update(members)
            if not self._leaves_to(known.kind, base):
                continue
            for attribute, held in members.items():
                function = self._function_in(held)
                if function is None or attribute[:2] == "__" or type(held) is staticmethod:
                    continue
                if self._is_public(base) and not self._overridden(base, attribute):
                    continue
                if _is_defined_by(base, attribute, function):
                    yield attribute, base

    def _leaves_to(self, kind: type, base: type) -> bool:
        """Whether methods that `base` defines may be documented as those of `kind`."""
        if self._is_public(base):
            return True
        is_core = self.scope.with_builtins and defined_in(base) == _CORE
        if not (is_core or self.scope.takes_class(defined_in(base))):
            return False
        between = mro_of(kind)[1:]
        return not any(base in mro_of(one) for one in between if self._is_public(one))

    def _is_public(self, kind: type) -> bool:
        known = self._classes.get(id(kind))
        return known is not None and known.is_public

    def _overridden(self, kind: type, attribute: str) -> tuple[str, ...]:
        """Return the public methods that a method of `kind` stands for, nearest first."""
        return tuple(
            f"{self._classes[id(base)].paths[0]}.{attribute}"
            for base in mro_of(kind)[1:]
            if self._is_public(base) and function_in(members_of(base).get(attribute)) is not None
        )

    def _function_in(self, held: Any) -> Function | None:
        """Return the function that a class holds; a builtin only if it is bound to instances."""
        if type(held) is types.BuiltinFunctionType:
            return None
        return function_in(held, with_builtins=self.scope.with_builtins)

    def _method(
        self, kind: type, definer: type, place: InClass, names: list[str]
    ) -> Iterator[ApiFunction]:
        """Describe a method of `kind` that `definer` defines, if it is a function."""
        held = members_of(definer)[place.name]
        original = self._function_in(held)
        if original is None:
            return
        # What `AdamW` has from `Adam` overrides nothing there: it is the same by another name.
        same = [
            f"{path}.{place.name}"
            for base in mro_of(kind)[1:]
            if f"{qualname_of(base)}.{place.name}" == original.__qualname__
            for path in self._public_paths(base)
        ]
        yield ApiFunction(
            name=names[0],
            original=original,
            bases=tuple(name for name in self._overridden(kind, place.name) if name not in same),
            aliases=_aliases(original, [*names, *same]),
            is_method=type(held) is not staticmethod,
            place=place,
        )

    def _public_paths(self, kind: type) -> tuple[str, ...]:
        return self._classes[id(kind)].paths if self._is_public(kind) else ()


def _offered(names: Mapping[str, Any]) -> list[str]:
    """Return the names that a module offers: its `__all__`, or those without an underscore."""
    listed: Any = names.get("__all__")
    offered = listed if type(listed) is list or type(listed) is tuple else names
    return [name for name in offered if type(name) is str and not name.startswith("_")]


def _definer(kind: type, attribute: str) -> type | None:
    """Return the class from which instances of `kind` have an attribute."""
    return next((base for base in mro_of(kind) if attribute in members_of(base)), None)


def _is_defined_by(kind: type, attribute: str, function: Function) -> bool:
    """Whether what a class holds is its own method, rather than another's or a second name.

    A decorator may not say what it wraps; and torch gives `AdamW`, when the first one is made, a
    decorated `Adam.step`.
    """
    if is_wrapper(function):
        return False
    if isinstance(function, types.MethodDescriptorType):
        return function.__objclass__ is kind
    name = function.__qualname__
    is_decorated = "__wrapped__" in vars(function) and name.rpartition(".")[2] == attribute
    return name == f"{qualname_of(kind)}.{attribute}" or is_decorated or "<locals>" in name


def _is_defined_in(module: str, held: Any) -> bool:
    """Whether a module itself defines what it holds: a class, or a function."""
    if issubclass(type(held), type):
        return defined_in(held) == module
    return type(held) is types.FunctionType and held.__module__ == module


def _aliases(function: Function, paths: list[str]) -> tuple[str, ...]:
    """Return the other public paths, and the name by place of definition."""
    defined_as = function_name(function)
    return tuple(dict.fromkeys(name for name in (*paths[1:], defined_as) if name != paths[0]))
