"""The variables of tracked models and what trains them: what they are called, how they change."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch.amp import GradScaler
from torch.optim.lr_scheduler import LRScheduler

from traincheck_instrument.content.contents import Contents
from traincheck_instrument.variables.module_tree import find, outline
from traincheck_instrument.variables.object_variables import ObjectVariables
from traincheck_instrument.variables.parameter_groups import ParameterGroups
from traincheck_instrument.variables.schedules import Scalers, Schedulers
from traincheck_instrument.variables.tensor_variables import Kind, TensorVariables, memory_of
from traincheck_instrument.variables.training_modes import TrainingModes
from traincheck_instrument.variables.wanted import ATTRIBUTES, Looks, Wanted

if TYPE_CHECKING:
    from traincheck_instrument.encode import Encoder
    from traincheck_instrument.variables.optimizers import Optimizers
    from traincheck_instrument.variables.variable import Change

Convert: TypeAlias = Callable[[torch.nn.Parameter], None]


class Variables:
    """Follows the models that the program has named, and optimizers, schedulers and scalers."""

    def __init__(
        self, encoder: Encoder, optimizers: Optimizers, convert: Convert, wanted: Wanted
    ) -> None:
        self.wanted = wanted
        self._encoder = encoder
        self._optimizers = optimizers
        self._convert = convert
        self._next_number = itertools.count().__next__
        self._roots: dict[str, weakref.ref[torch.nn.Module]] = {}
        self._root_ids: set[int] = set()  # theirs, while they live
        self._outline: list[object] | None = None  # of the models, when they were last walked
        self._has_new_parts = False  # since then
        self._storages: dict[int, int] = {}
        self._parameters = TensorVariables(
            Kind("parameter", "torch.nn.Parameter", wanted.of("parameter", ATTRIBUTES)),
            encoder,
            wanted.tensor_format,
        )
        self._buffers = TensorVariables(
            Kind("buffer", "torch.Tensor", wanted.of("buffer", ("data",))),
            encoder,
            wanted.tensor_format,
        )
        self._modes = TrainingModes(encoder.name_object)
        self._schedulers = Schedulers(encoder)
        self._scalers = Scalers(encoder)
        states = {
            "module": self._modes.states,
            "optimizer": ParameterGroups(optimizers, encoder).states,
            "scheduler": self._schedulers.states,
            "scaler": self._scalers.states,
        }
        self._objects = {
            role: ObjectVariables(role, states[role], wanted.attributes[role], self._next_number)
            for role in states
            if role in wanted.attributes
        }
        self._is_forgotten = False

    @property
    def is_empty(self) -> bool:
        """Whether no model is tracked, or nothing of it is wanted."""
        return not (self._roots and self.wanted.attributes)

    def attributes_of(self, role: str) -> tuple[str, ...]:
        """Return the attributes that are told of each variable of a role."""
        if role == "parameter":
            return self._parameters.attributes
        if role == "buffer":
            return () if self._buffers.is_empty else self._buffers.attributes
        objects = self._objects.get(role)
        return () if objects is None else objects.attributes

    def number_of(self, parameter: torch.nn.Parameter) -> int | None:
        """Return the number of the variable that a parameter is, if it is one."""
        variable = self._parameters.variable_of(parameter)
        return None if variable is None else variable.id

    @property
    def are_whole(self) -> bool:
        """Whether all models are still there that were when they were last walked."""
        return all(reference() is not None for reference in self._roots.values())

    def add_model(self, model: torch.nn.Module, name: str) -> None:
        """Track a model under a name, in place of what had the name before."""
        self._roots[name] = weakref.ref(model, self._forget_root(id(model)))
        self._root_ids.add(id(model))
        self._outline = None

    def begin_training(self) -> None:
        """Take note that what changes from now on is no initialisation."""
        self._parameters.tells_facts = False

    def _forget_root(self, key: int) -> Callable[[object], None]:
        return lambda _: self._root_ids.discard(key)

    def is_model(self, key: int) -> bool:
        """Whether an object that is alive, by its id, is a model that the program has named."""
        return key in self._root_ids

    def note_part(self, module: torch.nn.Module, *_: object) -> None:
        """Take note that a module, if it is tracked, has got a parameter or another module."""
        self._has_new_parts |= self._modes.has(module)

    def meet(self, one: object) -> None:
        """Follow a scheduler or scaler from now on; anything else is no concern of ours."""
        kind = type(one)
        if issubclass(kind, LRScheduler):
            self._schedulers.add(one)  # type: ignore[arg-type]  # isinstance() would ask the object
        elif issubclass(kind, GradScaler):
            self._scalers.add(one)  # type: ignore[arg-type]  # as above

    def walk(self) -> list[Change]:
        """Find what the models consist of now; return the tensors that are gone."""
        models = {
            name: model
            for name, reference in list(self._roots.items())
            if (model := reference()) is not None
        }
        self._roots = {name: self._roots[name] for name in models}
        self._has_new_parts = False
        outlined = outline(models)
        followed = (self._parameters, self._buffers, self._modes)
        if outlined == self._outline and all(one.is_intact for one in followed):
            return []
        found = find(models)
        self._outline = outlined if found.is_settled else None
        self._modes.update(found.modules)
        live = {one.storage for tensors in (self._parameters, self._buffers) for one in tensors}
        self._storages = {key: of for key, of in self._storages.items() if of in live}
        gone = self._parameters.update(found.parameters, self._number_parameter, self._storage_of)
        return gone + self._buffers.update(found.buffers, self._number, self._storage_of)

    def look(
        self,
        looks: Looks,
        *,
        whole: Collection[str] | None = None,
        as_baseline: bool = False,
    ) -> list[Change]:
        """Look at these attributes of all variables; return what differs from the last look.

        Large tensors are read whole of the attributes in `whole` (None: of all), of others only if
        they seem to have changed.
        A variable that was never told is returned with all its attributes, as `appeared`;
        `as_baseline` returns all variables with all attributes, as states that are no changes.
        """
        as_baseline = as_baseline or self._is_forgotten
        self._is_forgotten = True  # unless all of it succeeds, what was seen is not what was told
        # What is looked at are the tensors that are there now: programs replace them at any time.
        is_moved = any(
            one.role in looks and (self._has_new_parts or not one.is_intact)
            for one in (self._parameters, self._buffers)
        )
        changes = self.walk() if is_moved else []
        changes += self._look_at_tensors(looks, whole, as_baseline=as_baseline)
        for role, objects in self._objects.items():
            if as_baseline or role in looks:
                changes += objects.look(as_baseline=as_baseline)
        self._is_forgotten = False
        return changes

    def release(self, tensor: torch.Tensor) -> list[Callable[[], None]]:
        """Refer to a tensor no more, which may lie in a variable; return how to do so again."""
        return [
            resume
            for tensors in (self._parameters, self._buffers)
            if (resume := tensors.release(tensor)) is not None
        ]

    def clear(self) -> None:
        """Track nothing any more."""
        self._roots.clear()
        self._root_ids.clear()
        self._parameters.clear()
        self._buffers.clear()
        for objects in self._objects.values():
            objects.clear()

    def _look_at_tensors(
        self, looks: Looks, whole: Collection[str] | None, *, as_baseline: bool
    ) -> list[Change]:
        """Read all tensors before any is compared: those of a device come in one transfer."""
        followed = [
            tensors
            for tensors in (self._parameters, self._buffers)
            if tensors.attributes and (as_baseline or tensors.role in looks)
        ]
        if not followed:
            return []
        self._parameters.hold(self._optimizers.holders())
        contents = Contents(self._encoder.tensor)
        read = []
        for tensors in followed:
            asked = None if as_baseline else looks[tensors.role]
            sights = tensors.read(contents, asked, whole, as_baseline=as_baseline)
            read.append((tensors, sights))
        contents.fetch()
        return [
            change
            for tensors, sights in read
            for change in tensors.settle(contents, sights, as_baseline=as_baseline)
        ]

    def _number_parameter(self, parameter: torch.nn.Parameter) -> int:
        self._convert(parameter)
        return self._next_number()

    def _number(self, buffer: torch.Tensor) -> int:
        del buffer
        return self._next_number()

    def _storage_of(self, tensor: torch.Tensor, number: int) -> int:
        """Return the number of the memory of a tensor: that of the first variable in it."""
        return self._storages.setdefault(memory_of(self._encoder.tensor.local(tensor)), number)
