"""Which optimizers there are, and which of them holds a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.variables.named_objects import NamedObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from traincheck_instrument.variables.variable import Holders

# The instance's own dictionary, whatever a class says that `__dict__` is.
fields_of = vars(torch.optim.Optimizer)["__dict__"].__get__


class Optimizers:
    """The optimizers of this process by name; none is kept alive."""

    def __init__(self, on_named: Callable[[int, str | None], None]) -> None:
        self._named = NamedObjects[torch.optim.Optimizer]("optimizer", self._tell_name)
        self._on_named = on_named
        self._stepped: set[int] = set()  # ids of those that have a name
        self.on_met: Callable[[torch.optim.Optimizer], None] = lambda _: None
        self._held: list[tuple[str, list[tuple[int, ...]]]] = []
        self._holders: Mapping[int, Holders] = {}

    def __iter__(self) -> Iterator[tuple[str, torch.optim.Optimizer]]:
        return iter(self._named)

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        """Name an optimizer, unless it has a name."""
        if self._named.add(optimizer):
            self.on_met(optimizer)

    def note_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Take note that a step of an optimizer is seen."""
        self._stepped.add(id(optimizer))
        self.add(optimizer)

    def has_stepped(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether a step of an optimizer was seen."""
        return id(optimizer) in self._stepped

    def holders(self) -> Mapping[int, Holders]:
        """Return, by id of a parameter, the optimizers and group indices that hold it.

        The same mapping as long as they hold the same: to see that takes 40 ns a parameter.
        """
        held = [
            (name, [tuple(map(id, group["params"])) for group in groups_of(optimizer)])
            for name, optimizer in self
        ]
        if held != self._held:
            self._held = held
            holders: dict[int, Holders] = {}
            for name, groups in held:
                for index, group in enumerate(groups):
                    for key in group:
                        holders[key] = (*holders.get(key, ()), (name, index))
            self._holders = holders
        return self._holders

    def _tell_name(self, key: int, name: str | None) -> None:
        if name is None:
            self._stepped.discard(key)
        self._on_named(key, name)


def groups_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Return the parameter groups of an optimizer; one that is being made has none yet."""
    groups = fields_of(optimizer).get("param_groups", ())
    return [group for group in groups if issubclass(type(group), dict) and "params" in group]
