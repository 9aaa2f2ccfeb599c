"""Follows the imports of some packages, so that what is imported later is recorded, too.

Imports no torch: what the program imports before torch is followed as well.
"""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Thread(threading.local):
    def __init__(self) -> None:
        self.finding: list[str] = []  # modules that are looked for
        self.running: list[str] = []  # modules whose code runs
        self.ran: list[str] = []  # since the outermost of them began


class ImportFollower(MetaPathFinder):
    """A finder that leaves the finding to the others, and acts when a module is complete.

    A package is complete when the outermost import in it ends: only then all is there under its
    public name. There is one follower a process; it stays from before the program begins.
    """

    def __init__(self) -> None:
        self._packages: set[str] = set()
        self._thread = _Thread()
        self._incomplete: set[str] = set()  # in all threads
        self.on_complete: Callable[[Iterable[str]], None] | None = None  # the names of modules
        # What is in force while the code of a module runs.
        self.around: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()

    @classmethod
    def follow(cls, modules: Iterable[str]) -> ImportFollower:
        """Return the follower of this process, which follows the packages of some modules, too."""
        found = next((one for one in sys.meta_path if isinstance(one, cls)), None)
        if found is None:
            found = cls()
            sys.meta_path.insert(0, found)
        found._packages.update(name.partition(".")[0] for name in modules)
        return found

    def stop(self) -> None:
        """Follow nothing any more; may be called twice."""
        self.on_complete = None
        self.around = lambda _: nullcontext()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def is_complete(self, module: str) -> bool:
        """Whether the code of a module has run to its end, as far as is known."""
        return module not in self._incomplete

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module as if this finder were not there."""
        finding = self._thread.finding
        if fullname.partition(".")[0] not in self._packages or fullname in finding:
            return None
        finding.append(fullname)  # other finders may ask all of us
        try:
            return self._find(fullname, path, target)
        finally:
            finding.remove(fullname)

    def _find(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in [*sys.meta_path]:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                self._attend(spec)
                return spec
        return None

    def _attend(self, spec: ModuleSpec) -> None:
        """Be there when the code of a module runs."""
        # The loader of builtin modules is a class, which all of them share.
        loader: Any = spec.loader
        if loader is None or isinstance(loader, type) or not hasattr(loader, "exec_module"):
            return
        before = vars(loader).get("exec_module") if hasattr(loader, "__dict__") else None

        def exec_module(module: ModuleType) -> None:
            # The loader is left as it was: it may load others.
            if before is None:
                vars(loader).pop("exec_module", None)
            else:
                loader.exec_module = before
            self._run(spec.name, lambda: loader.exec_module(module))

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return

    def _run(self, name: str, execute: Callable[[], None]) -> None:
        running, ran = self._thread.running, self._thread.ran
        running.append(name)
        ran.append(name)
        self._incomplete.add(name)
        try:
            with self.around(name):
                execute()
        finally:
            running.remove(name)
            self._incomplete.discard(name)
            if not running:
                if self.on_complete is not None:
                    self.on_complete(tuple(ran))
                ran.clear()
