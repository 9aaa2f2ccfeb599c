"""What the models of a program consist of, and what each part is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
import torch
from torch.jit._script import OrderedDictWrapper
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from traincheck_instrument.encode.scalars import MAX_NAME, start_of_text

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

_LAZY = (UninitializedParameter, UninitializedBuffer)
_PARTS = ("_parameters", "_buffers", "_modules")
# The instance's own dictionary, whatever a class says that `__dict__` is.
fields_of = vars(torch.nn.Module)["__dict__"].__get__


@attrs.frozen
class Named(Generic[T]):
    """Something in a model, with all its names: one that is shared has several."""

    value: T
    names: list[str] = attrs.field(factory=list)


@attrs.define
class Found:
    """What was found in models, by id, in the order in which torch names it."""

    parameters: dict[int, Named[torch.nn.Parameter]] = attrs.field(factory=dict)
    buffers: dict[int, Named[torch.Tensor]] = attrs.field(factory=dict)
    modules: dict[int, Named[torch.nn.Module]] = attrs.field(factory=dict)
    is_settled: bool = True  # no lazy parameter is left that turns into another by itself

    def add(self, module: torch.nn.Module, path: str, above: frozenset[int] = frozenset()) -> None:
        """Add a module and what is in it; one that holds itself is gone into once."""
        _add(self.modules, module, path)
        fields = fields_of(module)
        parameters, buffers, modules = (_as_dict(fields.get(part)) for part in _PARTS)
        self._add_tensors(self.parameters, parameters, path)
        self._add_tensors(self.buffers, buffers, path)
        above |= {id(module)}
        for name, child in modules.items():
            if child is not None and id(child) not in above:
                self.add(child, f"{path}.{name}", above)

    def _add_tensors(
        self, found: dict[int, Named[T]], tensors: Mapping[str, T | None], path: str
    ) -> None:
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            if issubclass(type(tensor), _LAZY):
                self.is_settled = False
            else:
                _add(found, tensor, f"{path}.{name}")


def find(models: Mapping[str, torch.nn.Module]) -> Found:
    """Find what is in models, each under its name."""
    found = Found()
    for name, model in models.items():
        found.add(model, name)
    return found


def outline(models: Mapping[str, torch.nn.Module]) -> list[object]:
    """Return names and ids of all that is in models: equal as long as nothing was replaced.

    The class of a module is, by who parametrizes it or gives it another.

    Objects that died may have left their ids to others.
    """
    told: list[object] = list(models)
    waiting = list(models.values())
    seen: set[int] = set()
    while waiting:
        module = waiting.pop()
        key = id(module)
        told += (key, id(type(module)))
        if key in seen:
            continue
        seen.add(key)
        fields = fields_of(module)
        for part in _PARTS:
            if items := fields.get(part):
                if type(items) is not dict:
                    items = _as_dict(items)
                told += items
                told += map(id, items.values())
        if items:  # the modules, which come last
            waiting += [child for child in items.values() if child is not None]
    return told


def _as_dict(items: Any) -> dict[str, Any]:
    """Return a copy of what a module keeps its parts in; the methods of a subclass are not run."""
    if issubclass(type(items), dict):
        return dict(dict.items(items))
    # Scripted modules keep theirs elsewhere, behind a view.
    return dict(items.items()) if issubclass(type(items), OrderedDictWrapper) else {}


def _add(found: dict[int, Named[T]], value: T, path: str) -> None:
    key = id(value)
    if key not in found:
        found[key] = Named(value)
    found[key].names.append(start_of_text(path, MAX_NAME))
