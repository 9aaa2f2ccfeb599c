"""Sees when the first object of a class that users write is made."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from traincheck_instrument.api.namespaces import InClass
from traincheck_instrument.encode.names import TypeTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traincheck_instrument.api.namespaces import Place

# What every object of these kinds runs when it is made, copies of optimizers included.
_MAKERS = (
    InClass(torch.nn.Module, "__init__"),
    InClass(torch.optim.Optimizer, "_patch_step_function"),
    InClass(torch.optim.lr_scheduler.LRScheduler, "__init__"),
)


class Births:
    """Tells each class once, before its first object is complete."""

    def __init__(self, tell: Callable[[type], None]) -> None:
        self._classes = TypeTable(self._meet)
        self._tell = tell

    def wrappers(self) -> Iterator[tuple[Place, Callable[..., Any]]]:
        """Yield what is to stand in which place."""
        for place in _MAKERS:
            yield place, self._wrap(place.get())

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        meet = self._classes.__getitem__

        @functools.wraps(original)
        def make(made: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_compiling():
                meet(type(made))
            return original(made, *args, **kwargs)

        return make

    def _meet(self, kind: type) -> bool:
        self._tell(kind)
        return True
