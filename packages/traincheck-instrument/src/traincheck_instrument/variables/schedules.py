"""What changes by itself as a run goes on: learning-rate schedulers, and scalers of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.amp import GradScaler
from torch.optim.lr_scheduler import LRScheduler

from traincheck_instrument.encode.names import type_name
from traincheck_instrument.variables.named_objects import NamedObjects
from traincheck_instrument.variables.numbers import encoded_number
from traincheck_instrument.variables.object_variables import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_instrument.encode import Encoder
    from traincheck_instrument.variables.variable import Json

# The instances' own dictionaries, whatever a class says that `__dict__` is.
_fields_of_scheduler = vars(LRScheduler)["__dict__"].__get__
_fields_of_scaler = vars(GradScaler)["__dict__"].__get__


class Schedulers:
    """The states of learning-rate schedulers, as they are asked for."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._named = NamedObjects[LRScheduler]("scheduler")

    def add(self, scheduler: LRScheduler) -> None:
        """Follow a scheduler."""
        self._named.add(scheduler)

    def states(self) -> Iterator[State]:
        """Yield of each how often it stepped, and the learning rates that it has set."""
        for name, scheduler in self._named:
            fields = _fields_of_scheduler(scheduler)
            rates = fields.get("_last_lr")
            values = {
                "last_epoch": self._number(fields.get("last_epoch")),
                "last_lr": [*map(self._number, rates)] if type(rates) is list else None,
            }
            yield State((name,), (name,), type_name(type(scheduler)), values)

    def _number(self, value: Any) -> Json:
        return encoded_number(value, self._encoder, may_wait=True)


class Scalers:
    """The states of scalers, as they are asked for."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._named = NamedObjects[GradScaler]("scaler")

    def add(self, scaler: GradScaler) -> None:
        """Follow a scaler."""
        self._named.add(scaler)

    def states(self) -> Iterator[State]:
        """Yield of each by what it multiplies, and since how many steps; that may have to wait."""
        for name, scaler in self._named:
            fields = _fields_of_scaler(scaler)
            values = {
                "enabled": fields.get("_enabled") is True,
                "scale": self._first(fields, "_scale", "_init_scale"),
                "growth_tracker": self._first(fields, "_growth_tracker", "_init_growth_tracker"),
            }
            yield State((name,), (name,), type_name(type(scaler)), values)

    def _first(self, fields: dict[str, Any], *names: str) -> Json:
        """Return the first of the fields that is set; a scaler makes tensors when it is used."""
        value = next((fields[name] for name in names if fields.get(name) is not None), None)
        return encoded_number(value, self._encoder, may_wait=True)
