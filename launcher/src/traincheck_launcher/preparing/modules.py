"""The modules whose functions are recorded: looked for without importing one."""

from __future__ import annotations

import difflib
import pkgutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.api.scope import MAIN, Scope
from traincheck_instrument.program.module_search import find_module
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.machinery import ModuleSpec

    from traincheck_trace_schema.plan import Plan

TORCH = "torch"


@attrs.frozen
class ModuleFinder:
    """Finds modules as the program would: in its folder, then where Python looks."""

    folder: Path

    def check(self, names: Iterable[str]) -> None:
        """Make sure that each module is there, and may be recorded.

        Raises:
            ConfigError: one is not; those with a similar name are told.
        """
        for name in names:
            if name == MAIN:
                continue
            if self.find(name) is None:
                raise ConfigError(f"--modules-to-instr: there is no module {self._guess(name)}")
            if Scope().is_closed(name):
                raise ConfigError(
                    f"--modules-to-instr: {name} is never recorded: it belongs to Python, "
                    "or to what TrainCheck itself works with"
                )

    def find(self, name: str) -> ModuleSpec | None:
        """Return where a module is, if it is; its packages are not imported, as Python would."""
        return find_module(name, self._path)

    def is_installed(self, name: str) -> bool:
        """Whether a module is of an installed package: importing it runs nothing of the user's."""
        spec = self.find(name)
        if spec is None or spec.origin is None or not spec.has_location:
            return spec is not None and spec.loader is not None  # built into Python
        folders = (sysconfig.get_path(kind) for kind in ("purelib", "platlib", "stdlib"))
        return any(Path(spec.origin).is_relative_to(folder) for folder in folders)

    @property
    def _path(self) -> list[str]:
        return [str(self.folder), *sys.path]

    def _guess(self, name: str) -> str:
        package, _, last = name.rpartition(".")
        parent = self.find(package) if package else None
        path = self._path if parent is None else parent.submodule_search_locations
        there = [module.name for module in pkgutil.iter_modules(path)] if path else []
        dot = "." if parent is not None else ""
        close = difflib.get_close_matches(last, there, n=1)
        if close and (parent is not None or not package):
            return f"{name!r}; did you mean {f'{package}{dot}{close[0]}'!r}?"
        return f"{name!r} that the script could import; PYTHONPATH says where else to look"


def modules_of(names: Sequence[str], plan: Plan | None, finder: ModuleFinder) -> tuple[str, ...]:
    """Return the modules whose functions are recorded.

    Those that are given; otherwise torch, and the packages of the functions that a plan names.
    """
    if names:
        return tuple(dict.fromkeys(names))
    functions = () if plan is None else plan.functions or ()
    packages = sorted({function.name.partition(".")[0] for function in functions} - {TORCH})
    return (TORCH, *(name for name in packages if finder.find(name) is not None))
