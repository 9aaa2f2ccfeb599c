"""The namespaces of modules and classes, read and written without running code of theirs.

A module may have a `__getattr__`, a metaclass a `__setattr__`; none of them is asked.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

_names_in = vars(types.ModuleType)["__dict__"].__get__
_members_of = vars(type)["__dict__"].__get__
_mro_of = vars(type)["__mro__"].__get__
_module_of = vars(type)["__module__"].__get__
_qualname_of = vars(type)["__qualname__"].__get__


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT  # in place of what a namespace does not hold


def names_in(module: types.ModuleType) -> dict[str, Any]:
    """Return the namespace of a module."""
    names: dict[str, Any] = _names_in(module)
    return names


def members_of(kind: type) -> Mapping[str, Any]:
    """Return what a class itself holds."""
    members: Mapping[str, Any] = _members_of(kind)
    return members


def mro_of(kind: type) -> tuple[type, ...]:
    """Return a class and its bases, in the order in which an attribute is looked up."""
    mro: tuple[type, ...] = _mro_of(kind)
    return mro


def defined_in(kind: type) -> str:
    """Return the name of the module that defines a class, or nothing if it does not say so."""
    name = _module_of(kind)
    return name if type(name) is str else ""


def qualname_of(kind: type) -> str:
    """Return the name of a class in the module that defines it."""
    name: str = _qualname_of(kind)
    return name


def held_at(path: str) -> Any:
    """Return what a dotted path leads to, through a module that is imported, or `ABSENT`."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        held: Any = sys.modules.get(".".join(parts[:end]))
        if issubclass(type(held), types.ModuleType):
            return functools.reduce(_attribute, parts[end:], held)
    return ABSENT


def _attribute(owner: Any, name: str) -> Any:
    if issubclass(type(owner), types.ModuleType):
        return names_in(owner).get(name, ABSENT)
    kinds = mro_of(owner) if issubclass(type(owner), type) else ()
    return next((members_of(kind)[name] for kind in kinds if name in members_of(kind)), ABSENT)


class Place(Protocol):
    """Where a function is held."""

    def get(self) -> Any:
        """Return what is there now, or `ABSENT`."""

    def set(self, value: Any) -> None:
        """Put a value there.

        Raises:
            AttributeError, TypeError: the owner can't be changed.
        """


@attrs.frozen
class InModule:
    """A name in a module."""

    owner: types.ModuleType
    name: str

    def get(self) -> Any:
        """Return what is there now, or `ABSENT`."""
        return names_in(self.owner).get(self.name, ABSENT)

    def set(self, value: Any) -> None:
        """Put a value there."""
        names_in(self.owner)[self.name] = value


@attrs.frozen
class InClass:
    """An attribute of a class, which it may be about to get."""

    owner: type
    name: str

    def get(self) -> Any:
        """Return what the class itself has there now, or `ABSENT`."""
        return members_of(self.owner).get(self.name, ABSENT)

    def set(self, value: Any) -> None:
        """Put a value there; `ABSENT` takes it away."""
        if value is ABSENT:
            type.__delattr__(self.owner, self.name)
        else:
            type.__setattr__(self.owner, self.name, value)


@attrs.frozen
class AsDefault:
    """The default of a parameter of a function: by position, or of one that has a keyword only."""

    owner: Any  # a types.FunctionType, which the type checker would take for a method
    parameter: int | str

    def get(self) -> Any:
        """Return what is there now, or `ABSENT`."""
        if isinstance(self.parameter, str):
            return (self.owner.__kwdefaults__ or {}).get(self.parameter, ABSENT)
        defaults = self.owner.__defaults__ or ()
        return defaults[self.parameter] if self.parameter < len(defaults) else ABSENT

    def set(self, value: Any) -> None:
        """Put a value there."""
        if isinstance(self.parameter, str):
            self.owner.__kwdefaults__[self.parameter] = value
        else:
            defaults = list(self.owner.__defaults__ or ())
            defaults[self.parameter] = value
            self.owner.__defaults__ = tuple(defaults)
