"""Does something as soon as the program itself has imported a module, and not earlier.

What a module reads when it is imported, such as environment variables, is then as the program set
it.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class AfterImport(MetaPathFinder):
    """A finder that leaves the finding to the others, once, and follows the import."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act

    def install(self) -> None:
        """Wait for the import; act now if it has taken place."""
        if self._name in sys.modules:
            self._act()
        elif self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module as if this finder were not there."""
        del path, target
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self._act()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
