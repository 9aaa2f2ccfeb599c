"""The modules of tracked models, and whether each is in training mode."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping

import attrs
import torch

from traincheck_instrument.encode.names import type_name
from traincheck_instrument.variables.module_tree import Named, fields_of
from traincheck_instrument.variables.object_variables import State

_MODES = {True: {"training": True}, False: {"training": False}}


@attrs.frozen
class _Module:
    """A module, which is not kept alive, and what is told of it in either mode."""

    reference: weakref.ref[torch.nn.Module]
    states: Mapping[bool, State]


class TrainingModes:
    """The states of modules, as they are asked for."""

    def __init__(self, on_named: Callable[[int, str | None], None]) -> None:
        """Follow none yet; `on_named` is told the id and name of each, None when it is gone."""
        self._modules: dict[int, _Module] = {}
        self._on_named = on_named

    def update(self, found: Mapping[int, Named[torch.nn.Module]]) -> None:
        """Follow what was found, and nothing else."""
        for key in self._modules.keys() - found.keys():
            self._on_named(key, None)
        self._modules = {key: self._module(key, named) for key, named in found.items()}

    def has(self, module: torch.nn.Module) -> bool:
        """Whether a module was found."""
        return id(module) in self._modules

    @property
    def is_intact(self) -> bool:
        """Whether all modules that were found are still there."""
        return all(one.reference() is not None for one in self._modules.values())

    def states(self) -> Iterator[State]:
        """Yield whether each module trains; of one that does not say so, nothing."""
        for one in self._modules.values():
            module = one.reference()
            training = None if module is None else fields_of(module).get("training")
            if type(training) is bool:
                yield one.states[training]

    def _module(self, key: int, named: Named[torch.nn.Module]) -> _Module:
        module = named.value
        kind, names = type_name(type(module)), tuple(named.names)
        states = {
            training: State((key, kind), names, kind, values) for training, values in _MODES.items()
        }
        self._on_named(key, names[0])
        # Another object may get its id.
        return _Module(weakref.ref(module, lambda _: self._on_named(key, None)), states)
