"""The groups of optimizers: their hyper-parameters, and whether their state moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import torch

from traincheck_instrument.content.place import is_ordinary
from traincheck_instrument.encode.names import type_name
from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.variables.numbers import encoded_number, number_of
from traincheck_instrument.variables.object_variables import State
from traincheck_instrument.variables.optimizers import Optimizers, fields_of, groups_of
from traincheck_instrument.variables.variable import Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_instrument.encode import Encoder

# Whose values can't change as long as they are the same object.
_PRIMITIVE = (bool, int, float, str, type(None))


@attrs.define(eq=False)
class _Group:
    """What was found in a group; of values that can't change, the objects."""

    primitives: dict[str, Any] = attrs.field(factory=dict)
    values: dict[str, Json] = attrs.field(factory=dict)


class ParameterGroups:
    """The states of the optimizers' groups, as they are asked for."""

    def __init__(self, optimizers: Optimizers, encoder: Encoder) -> None:
        self._optimizers = optimizers
        self._encoder = encoder
        self._known: dict[tuple[object, ...], _Group] = {}

    def states(self) -> Iterator[State]:
        """Yield the state of each group: `lr` and the like, `params`, `state` and `steps`."""
        known, self._known = self._known, {}
        for name, optimizer in self._optimizers:
            kind = type_name(type(optimizer))
            of_parameters = _states(optimizer)
            with_state = set(map(id, of_parameters))
            for index, group in enumerate(groups_of(optimizer)):
                key = name, index
                last = self._known[key] = known.get(key) or _Group()
                found = self._hyper_parameters(last, group)
                found |= _progress(group["params"], of_parameters, with_state)
                # A change makes another dictionary: that is how it is known.
                if any(one not in last.values or last.values[one] != found[one] for one in found):
                    last.values = {**last.values, **found}
                yield State(key, (f"{name}.group{index}",), kind, last.values)

    def _hyper_parameters(self, last: _Group, group: Mapping[str, Any]) -> dict[str, Json]:
        """Return those that are not the very objects that they were."""
        found: dict[str, Json] = {}
        known = last.primitives
        for name, value in group.items():
            if type(name) is not str or name == "params" or known.get(name, known) is value:
                continue
            known.pop(name, None)
            is_list = type(value) is tuple or type(value) is list
            if _is_primitive(value) or (is_list and all(map(_is_primitive, value))):
                if type(value) is not list:
                    known[name] = value
                found[start_of_text(name)] = self._encoder(value)
            else:
                found[start_of_text(name)] = encoded_number(value, self._encoder)
        return found


def _is_primitive(value: object) -> bool:
    return any(type(value) is kind for kind in _PRIMITIVE)


def _states(optimizer: torch.optim.Optimizer) -> dict[Any, Any]:
    """Return what an optimizer keeps of parameters."""
    states = fields_of(optimizer).get("state")
    return states if issubclass(type(states), dict) else {}


def _progress(
    parameters: Any, of_parameters: dict[Any, Any], with_state: set[int]
) -> dict[str, Json]:
    """Tell how many parameters have a state, and the steps that the first of them has made."""
    first = next((one for one in parameters if id(one) in with_state), None)
    steps: Any = None
    # To hash one of another class may be code of the program.
    if first is not None and is_ordinary(type(first)):
        state: Any = dict.get(of_parameters, first)
        steps = dict.get(state, "step") if issubclass(type(state), dict) else None
        if issubclass(type(steps), torch.Tensor):
            steps = number_of(steps)
    return {
        "params": len(parameters),
        "state": sum(map(with_state.__contains__, map(id, parameters))),
        "steps": int(steps) if type(steps) is int or type(steps) is float else None,
    }
