"""Lets torch swap the content of tensors that are followed.

It refuses those that anybody refers to weakly, as we do. `Module.to` and `load_state_dict` swap
after `torch.__future__.set_swap_module_params_on_conversion(True)`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.api.namespaces import InModule
from traincheck_instrument.api.replacements import Replacements

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_instrument.recorder.faults import Faults
    from traincheck_instrument.trackers.tracker import Tracker
    from traincheck_instrument.variables.variables import Variables


class SwapPatch:
    """Lets go of tensors while they are swapped. Contains its own faults."""

    def __init__(self, tracker: Tracker, variables: Variables, faults: Faults) -> None:
        self._tracker = tracker
        self._variables = variables
        self._faults = faults
        self._replaced = Replacements()

    def install(self) -> None:
        """Put the patch in place; may be called twice."""
        if self._replaced:
            return
        place = InModule(torch.utils, "swap_tensors")
        original = place.get()

        @functools.wraps(original)
        def swap_tensors(*args: Any, **kwargs: Any) -> Any:
            resume = self._contained(lambda: self._release((*args, *kwargs.values())))
            try:
                return original(*args, **kwargs)
            finally:
                self._contained(lambda: [go_on() for go_on in resume or ()])

        self._replaced.put(place, swap_tensors)

    def uninstall(self) -> None:
        """Put back what was there; may be called twice."""
        self._replaced.put_back()

    def _release(self, tensors: tuple[Any, ...]) -> list[Callable[[], None]]:
        """Let go of tensors; return how to follow them again."""
        resume: list[Callable[[], None]] = []
        for tensor in tensors:
            if self._tracker.release(tensor):
                resume.append(functools.partial(self._tracker.convert, tensor))
            resume += self._variables.release(tensor)
        return resume

    def _contained(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._faults.contain("the swap of two tensors", error)
