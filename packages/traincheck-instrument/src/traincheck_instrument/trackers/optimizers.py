"""Which optimizers there are, and which of them holds a parameter."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import attrs
import torch


@attrs.define(eq=False)
class Optimizers:
    """The optimizers of this process by name; none is kept alive."""

    on_named: Callable[[int, str | None], None]  # id of the object, its name; None when it is gone
    _known: dict[int, tuple[str, weakref.ref[torch.optim.Optimizer]]] = attrs.field(factory=dict)
    _count: int = 0

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        """Name an optimizer, unless it has a name."""
        key = id(optimizer)
        if key in self._known:
            return
        name = f"optimizer{self._count}"
        self._count += 1

        def forget(_: object) -> None:
            del self._known[key]
            self.on_named(key, None)

        self._known[key] = (name, weakref.ref(optimizer, forget))
        self.on_named(key, name)

    def holders(self) -> dict[int, list[tuple[str, int]]]:
        """Return, by id of a parameter, the optimizers and group indices that hold it."""
        held: dict[int, list[tuple[str, int]]] = {}
        for name, reference in list(self._known.values()):
            optimizer = reference()
            for index, group in enumerate(getattr(optimizer, "param_groups", ())):
                for parameter in group["params"]:
                    held.setdefault(id(parameter), []).append((name, index))
        return held
