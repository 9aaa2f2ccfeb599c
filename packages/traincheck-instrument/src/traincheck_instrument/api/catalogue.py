"""Finds the public API of a package: what a user could call, under its documented name."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import attrs

from traincheck_instrument.api.scope import is_worth_recording, is_worth_walking
from traincheck_instrument.encode.names import function_name, type_name

Paths: TypeAlias = Mapping[type, tuple[str, ...]]  # of a class: its public paths, shortest first


@attrs.frozen(kw_only=True)
class Place:
    """Where a function is held: by a module or class, or as the default of another's parameter."""

    owner: types.ModuleType | type | types.FunctionType
    attribute: str
    index: int | None = None  # of the default

    def get(self) -> Any:
        """Return what is there now."""
        if self.index is None:
            return vars(self.owner).get(self.attribute)
        return getattr(self.owner, self.attribute)[self.index]

    def set(self, value: Any) -> None:
        """Put a value there."""
        if self.index is None:
            setattr(self.owner, self.attribute, value)
            return
        defaults = list(getattr(self.owner, self.attribute))
        defaults[self.index] = value
        setattr(self.owner, self.attribute, tuple(defaults))


@attrs.frozen(kw_only=True)
class ApiFunction:
    """A public function: its names, and every place from which it is reached."""

    name: str  # the shortest public path
    original: Callable[..., Any]
    bases: tuple[str, ...]
    aliases: tuple[str, ...]
    parameters: tuple[str, ...]
    is_method: bool
    places: tuple[Place, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name by which one may speak of this function."""
        return (self.name, *self.bases, *self.aliases)


@attrs.frozen(kw_only=True)
class Api:
    """The public functions of a package by name, and its public classes with their paths."""

    functions: tuple[ApiFunction, ...]
    classes: Paths

    def override(self, owner: type, attribute: str) -> ApiFunction | None:
        """Describe a method of `owner` that a class outside the package overrides, if one does."""
        definer = next((kind for kind in owner.__mro__ if attribute in vars(kind)), None)
        if definer is None or definer in self.classes:
            return None
        name = f"{type_name(definer)}.{attribute}"
        return _describe_method(definer, attribute, (name,), self.classes)


def find_api(root: str) -> Api:
    """Find the public functions, methods and classes of an imported package."""
    modules = list(_public_modules(root))
    classes = _public_classes(modules, root)
    functions = [*_module_functions(modules, classes, root), *_methods(classes)]
    return Api(
        functions=tuple(sorted(functions, key=lambda function: function.name)), classes=classes
    )


def _public_modules(root: str) -> Iterator[types.ModuleType]:
    """Yield the imported modules below `root` without a private component, shortest name first."""
    names = [
        name
        for name, module in sys.modules.items()
        if (name == root or name.startswith(f"{root}.")) and isinstance(module, types.ModuleType)
    ]
    for name in sorted(names, key=lambda name: (name.count("."), name)):
        if is_worth_walking(name):
            yield sys.modules[name]


def _public_names(module: types.ModuleType) -> list[str]:
    """Return what the module offers: its `__all__`, or its names without an underscore."""
    offered = vars(module).get("__all__")
    if offered is None:
        offered = [name for name in vars(module) if not name.startswith("_")]
    return sorted({name for name in offered if isinstance(name, str)})


def _defined_below(value: Any, root: str) -> bool:
    defined_in = getattr(value, "__module__", None)
    return isinstance(defined_in, str) and (defined_in == root or defined_in.startswith(f"{root}."))


def _is_class(value: Any) -> TypeGuard[type]:
    # isinstance() would ask objects that answer with a deprecation warning.
    return issubclass(type(value), type)


def _is_function(value: Any) -> TypeGuard[types.FunctionType]:
    # A builtin is known to torch by identity (dispatch, scripting): nothing may stand in its place.
    return type(value) is types.FunctionType


def _offers(modules: list[types.ModuleType]) -> Iterator[tuple[str, Any]]:
    """Yield what the modules offer, under its path."""
    for module in modules:
        for name in _public_names(module):
            yield f"{module.__name__}.{name}", vars(module).get(name)


def _public_classes(modules: list[types.ModuleType], root: str) -> Paths:
    found: dict[type, list[str]] = {}
    for path, value in _offers(modules):
        if _is_class(value) and _defined_below(value, root):
            found.setdefault(value, []).append(path)
    return {owner: tuple(paths) for owner, paths in found.items()}


def _module_functions(
    modules: list[types.ModuleType], classes: Paths, root: str
) -> Iterator[ApiFunction]:
    found: dict[int, tuple[Callable[..., Any], list[str]]] = {}
    for path, value in _offers(modules):
        if _is_function(value) and is_worth_recording(path) and _defined_below(value, root):
            found.setdefault(id(value), (value, []))[1].append(path)
    places = _places_of(set(found), classes, root)
    for key, (value, paths) in found.items():
        yield ApiFunction(
            name=paths[0],
            original=value,
            bases=(),
            aliases=_aliases(value, paths),
            parameters=parameter_names(value),
            is_method=False,
            places=tuple(places[key]),
        )


def _places_of(wanted: set[int], classes: Paths, root: str) -> dict[int, list[Place]]:
    """Return where the wanted functions are held: by modules, private ones too, and as defaults.

    torch asks if an argument *is* a function of its own, as the activation of a transformer layer.
    """
    places: dict[int, list[Place]] = {key: [] for key in wanted}
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or not (
            module_name == root or module_name.startswith(f"{root}.")
        ):
            continue
        for attribute, value in list(vars(module).items()):
            if id(value) in wanted:
                places[id(value)].append(Place(owner=module, attribute=attribute))
    for owner in classes:
        for method in vars(owner).values():
            if isinstance(method, types.FunctionType):
                for index, value in enumerate(method.__defaults__ or ()):
                    if id(value) in wanted:
                        place = Place(owner=method, attribute="__defaults__", index=index)
                        places[id(value)].append(place)
    return places


def _methods(classes: Paths) -> Iterator[ApiFunction]:
    for owner, paths in classes.items():
        for attribute, value in list(vars(owner).items()):
            names = [f"{path}.{attribute}" for path in paths]
            if _is_own_method(owner, attribute, value) and is_worth_recording(names[0]):
                yield _describe_method(owner, attribute, names, classes)


def _is_own_method(owner: type, attribute: str, value: Any) -> bool:
    """Whether `owner` defines the method, rather than being given another's function."""
    return (
        isinstance(value, types.FunctionType)
        and value.__qualname__ == f"{owner.__qualname__}.{attribute}"
    )


def _describe_method(
    owner: type, attribute: str, names: Sequence[str], classes: Paths
) -> ApiFunction:
    """Describe a method that `owner` defines, with the public base methods that it overrides."""
    value = vars(owner)[attribute]
    bases = [
        f"{classes[base][0]}.{attribute}"
        for base in owner.__mro__[1:]
        if base in classes and _is_own_method(base, attribute, vars(base).get(attribute))
    ]
    return ApiFunction(
        name=names[0],
        original=value,
        bases=tuple(bases),
        aliases=_aliases(value, names),
        parameters=parameter_names(value),
        is_method=True,
        places=(Place(owner=owner, attribute=attribute),),
    )


def _aliases(value: Callable[..., Any], paths: Sequence[str]) -> tuple[str, ...]:
    """Return the other public paths, and the name by place of definition."""
    defined_as = function_name(value)
    return tuple(dict.fromkeys(name for name in (*paths[1:], defined_as) if name != paths[0]))


def parameter_names(value: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the positional parameters."""
    function = inspect.unwrap(value)
    if not isinstance(function, types.FunctionType):
        return ()
    code = function.__code__
    return code.co_varnames[: code.co_argcount]
