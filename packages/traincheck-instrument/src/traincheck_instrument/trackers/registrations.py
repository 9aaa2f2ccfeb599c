"""Tells when modules get parameters, or modules, between two walks through the models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.utils.hooks import RemovableHandle


class Registrations:
    """Hooks of torch, which see assignments too, as of `load_state_dict(assign=True)`.

    What torch itself swaps for a while, as `functional_call` and `fully_shard` do, passes them by.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self._hooks: list[RemovableHandle] = []

    def install(self) -> None:
        """Put the hooks in place; may be called twice."""
        if not self._hooks:
            self._hooks = [
                register_module_parameter_registration_hook(self._note),
                register_module_module_registration_hook(self._note),
            ]

    def uninstall(self) -> None:
        """Remove them; may be called twice."""
        while self._hooks:
            self._hooks.pop().remove()
