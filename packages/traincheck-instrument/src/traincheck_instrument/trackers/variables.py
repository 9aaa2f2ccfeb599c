"""The variables of tracked models: what they are called, and how their state changes."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import torch
from torch.nn.parameter import is_lazy

from traincheck_instrument.encode.scalars import MAX_NAME, start_of_text
from traincheck_instrument.trackers.digest import (
    digest_text,
    fingerprint,
    is_readable,
    largest,
)

if TYPE_CHECKING:
    from traincheck_instrument.encode import Encoder
    from traincheck_instrument.trackers.optimizers import Optimizers

Json: TypeAlias = Any
Holders: TypeAlias = tuple[tuple[str, int], ...]

ATTRIBUTES = ("data", "grad", "requires_grad")
_PRIMITIVE = (bool, int, str)


@attrs.define(eq=False)
class Variable:
    """A tracked parameter, and its state when it was last looked at."""

    id: int
    storage: int
    reference: weakref.ref[torch.nn.Parameter]
    names: tuple[str, ...]
    holders: Holders = ()
    told_names: tuple[str, ...] = ()
    is_told: bool = False
    seen: dict[str, Any] = attrs.field(factory=dict)  # attribute: what tells it from another state


@attrs.frozen(kw_only=True)
class Change:
    """A variable that was not as it was when last looked at; `attributes` are those that differ."""

    event: str
    variable: Variable
    attributes: Mapping[str, Json]


class Variables:
    """Follows the parameters of the models that the program has named."""

    def __init__(
        self,
        encoder: Encoder,
        optimizers: Optimizers,
        convert: Callable[[torch.nn.Parameter], None],
        attributes: Iterable[str],
    ) -> None:
        self._convert = convert
        self.attributes = tuple(name for name in ATTRIBUTES if name in set(attributes))
        self._encoder = encoder
        self._optimizers = optimizers
        self._roots: dict[str, weakref.ref[torch.nn.Module]] = {}
        self._by_object: dict[int, Variable] = {}
        self._storages: dict[int, int] = {}
        self._count = 0
        self._is_forgotten = False

    @property
    def is_empty(self) -> bool:
        """Whether no model is tracked."""
        return not self._roots

    def add_model(self, model: torch.nn.Module, name: str) -> None:
        """Track the parameters of a model under a name, in place of what had the name before."""
        self._roots[name] = weakref.ref(model)

    def walk(self) -> list[Change]:
        """Find the parameters that the models have now; return those that are gone."""
        names: dict[int, list[str]] = {}
        objects: dict[int, torch.nn.Parameter] = {}
        for root, reference in list(self._roots.items()):
            if (model := reference()) is None:
                continue
            for path, parameter in model.named_parameters(prefix=root, remove_duplicate=False):
                if not is_lazy(parameter):
                    names.setdefault(id(parameter), []).append(start_of_text(path, MAX_NAME))
                    objects[id(parameter)] = parameter
        # An id may have come to stand for another object.
        gone = [
            self._by_object.pop(key)
            for key, known in list(self._by_object.items())
            if known.reference() is not objects.get(key)
        ]
        live = {variable.storage for variable in self._by_object.values()}
        self._storages = {key: of for key, of in self._storages.items() if of in live}
        for key, parameter in objects.items():
            if key not in self._by_object:
                self._by_object[key] = self._new(parameter)
            self._by_object[key].names = tuple(names[key])
        return [
            Change(event="gone", variable=variable, attributes={})
            for variable in gone
            if variable.is_told
        ]

    def look(self, attributes: Iterable[str], *, as_baseline: bool = False) -> list[Change]:
        """Look at these attributes of every variable; return what differs from the last look.

        A variable that was never told is returned with all its attributes, as `appeared`;
        `as_baseline` returns all of them, as states that are no changes.
        """
        held = self._optimizers.holders()
        wanted = [name for name in self.attributes if name in set(attributes)]
        as_baseline = as_baseline or self._is_forgotten
        self._is_forgotten = True  # unless all of it succeeds, what was seen is not what was told
        changes = list(self._changes(held, wanted, as_baseline=as_baseline))
        self._is_forgotten = False
        return changes

    def clear(self) -> None:
        """Track nothing any more."""
        self._roots.clear()
        self._by_object.clear()

    def _changes(
        self, held: Mapping[int, list[tuple[str, int]]], wanted: list[str], *, as_baseline: bool
    ) -> Iterator[Change]:
        for key, variable in list(self._by_object.items()):
            parameter = variable.reference()
            if parameter is None:
                del self._by_object[key]
                if variable.is_told:
                    yield Change(event="gone", variable=variable, attributes={})
                continue
            is_new = not variable.is_told or as_baseline
            names = self.attributes if is_new else wanted
            if is_new:
                variable.seen.clear()
            changed = {
                name: value for name in names for value in self._changed(variable, parameter, name)
            }
            if "data" in names:
                changed |= self._changed_marks(variable, parameter)
            holders = tuple(held.get(key, ()))
            is_renamed = variable.names != variable.told_names
            if is_new or changed or is_renamed or holders != variable.holders:
                event = "baseline" if as_baseline else "appeared" if is_new else "changed"
                variable.holders, variable.told_names = holders, variable.names
                variable.is_told = True
                yield Change(event=event, variable=variable, attributes=changed)

    def _changed(self, variable: Variable, parameter: torch.nn.Parameter, name: str) -> list[Json]:
        """Return the attribute's value, encoded, if it is not what was last seen; else nothing."""
        value = parameter if name == "data" else getattr(parameter, name)
        mark: object = value
        if isinstance(value, torch.Tensor):
            local = self._encoder.tensor.local(value)
            readable = is_readable(local)
            mark = fingerprint(local) if readable else str(self._encoder.tensor(value))
        elif value is None:
            mark = "none"
        if variable.seen.get(name) == mark:
            return []
        variable.seen[name] = mark
        if not isinstance(value, torch.Tensor):
            return [value]
        described = self._encoder.tensor(value)
        described.pop("requires_grad", None)
        if isinstance(mark, int):
            described["digest"] = digest_text(mark)
            if name == "grad":
                magnitude = largest(local)
                described["zero"] = magnitude == 0.0
                described["finite"] = math.isfinite(magnitude)
        return [{"tensor": described}]

    def _changed_marks(self, variable: Variable, parameter: torch.nn.Parameter) -> dict[str, Json]:
        """Return what the program wrote onto the parameter since the last look, if it is primitive.

        Frameworks say there what a parameter is, as `tensor_model_parallel`.
        """
        marks = {
            name: value
            for name, value in vars(parameter).items()
            if type(value) in _PRIMITIVE and type(name) is str and not name.startswith("_")
        }
        changed = {
            name: value for name, value in marks.items() if variable.seen.get(f".{name}") != value
        }
        variable.seen.update({f".{name}": value for name, value in changed.items()})
        return {start_of_text(name): self._encoder(value) for name, value in changed.items()}

    def _new(self, parameter: torch.nn.Parameter) -> Variable:
        self._convert(parameter)
        number = self._count
        self._count += 1
        local = self._encoder.tensor.local(parameter)
        key = local.untyped_storage()._cdata if is_readable(local) else id(parameter)  # noqa: SLF001
        storage = self._storages.setdefault(key, number)
        return Variable(id=number, storage=storage, reference=weakref.ref(parameter), names=())
