"""Finds from where functions of modules are reached, so that a wrapper can stand everywhere."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from traincheck_instrument.api.callables import function_in
from traincheck_instrument.api.namespaces import AsDefault, InModule, Place, members_of, names_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator


def find_places(
    wanted: Collection[int], modules: Iterable[types.ModuleType], classes: Iterable[type]
) -> dict[int, list[Place]]:
    """Return where functions are held, by id: by modules, whoever wrote them, and as defaults.

    `from x import y` has put them there; and torch asks if an argument *is* a function of its own,
    as the activation of a transformer layer.
    """
    places: dict[int, list[Place]] = {key: [] for key in wanted}
    holders: list[Any] = []  # of functions, which may have defaults
    for module in modules:
        for name, value in list(names_in(module).items()):
            if id(value) in places:
                places[id(value)].append(InModule(module, name))
            holders.append(value)
    for owner in classes:
        holders += members_of(owner).values()
    for held in holders:
        for place, value in _defaults(function_in(held)):
            if id(value) in places:
                places[id(value)].append(place)
    return places


def _defaults(function: Any) -> Iterator[tuple[Place, Any]]:
    """Yield the defaults of the parameters of a function, and of one that it stands for."""
    while isinstance(function, types.FunctionType):
        for index, value in enumerate(function.__defaults__ or ()):
            yield AsDefault(function, index), value
        for name, value in (function.__kwdefaults__ or {}).items():
            yield AsDefault(function, name), value
        function = vars(function).get("__wrapped__")
