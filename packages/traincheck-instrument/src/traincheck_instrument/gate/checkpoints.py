"""Holds what writes checkpoints until the gate lets it go on."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from traincheck_instrument.api.namespaces import ABSENT, InModule
from traincheck_instrument.api.replacements import Replacements
from traincheck_instrument.program.after_import import AfterImport

if TYPE_CHECKING:
    from collections.abc import Callable

_WRITERS = (
    ("torch", "save"),
    ("torch.distributed.checkpoint", "save"),
    ("torch.distributed.checkpoint", "async_save"),
    ("safetensors.torch", "save_file"),
)


class Checkpoints:
    """Replaces the functions by ones that ask first. `install` and `uninstall` may be called twice.

    Modules that the program imports later are attended to when it does.
    """

    def __init__(self, before_saving: Callable[[], None]) -> None:
        self._before_saving = before_saving
        self._replaced = Replacements()
        self._imports: list[AfterImport] = []

    def install(self) -> None:
        """Begin to ask."""
        if self._replaced:
            return
        for module in dict.fromkeys(module for module, _ in _WRITERS):
            names = [name for of, name in _WRITERS if of == module]
            follow = AfterImport(module, functools.partial(self._replace, module, names))
            self._imports.append(follow)
            follow.install()

    def uninstall(self) -> None:
        """Ask no longer."""
        for follow in self._imports:
            follow.uninstall()
        self._imports.clear()
        self._replaced.put_back()

    def _replace(self, module: str, names: list[str]) -> None:
        for name in names:
            place = InModule(sys.modules[module], name)
            original = place.get()
            if original is not ABSENT:
                self._replaced.put(place, self._asking(original))

    def _asking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        before_saving = self._before_saving

        @functools.wraps(original)
        def save(*args: Any, **kwargs: Any) -> Any:
            before_saving()
            return original(*args, **kwargs)

        return save
