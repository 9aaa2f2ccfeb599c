"""Finds the file of a module that is to be run, without importing anything."""

from __future__ import annotations

import difflib
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from traincheck_instrument.program.module_search import find_module
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_OPTION = "--module"
_MAIN = "__main__"


def file_of_module(name: str) -> Path:
    """Return the file that `python -m` would run for a module: of a package, its `__main__.py`.

    Raises:
        ConfigError: there is no such module, or nothing of Python's to run.
    """
    path = [str(Path.cwd()), *sys.path]
    spec = find_module(name, path)
    if spec is None:
        raise ConfigError(f"{_OPTION}: there is no module {_guess(name, path)}")
    if spec.submodule_search_locations is not None:
        spec = find_module(f"{name}.{_MAIN}", path)
        if spec is None:
            raise ConfigError(
                f"{_OPTION}: {name} is a package without {_MAIN}.py; name a module of it"
            )
    if not spec.has_location or not _is_source(spec):
        raise ConfigError(
            f"{_OPTION}: the source of {name} can't be found; name a module with a .py file"
        )
    return Path(str(spec.origin))


def name_in_package(script: Path) -> str | None:
    """Return the name of a script as a module, if it lies in a package."""
    path = script.resolve()
    parts = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.append(folder.name)
    return ".".join(reversed(parts)) if len(parts) > 1 else None


def _is_source(spec: ModuleSpec) -> bool:
    return str(spec.origin).endswith(".py")


def _guess(name: str, path: list[str]) -> str:
    if name.endswith(".py"):
        return f"{name!r}; a module is named without '.py', and a script with --pyscript"
    package, _, last = name.rpartition(".")
    parent = find_module(package, path) if package else None
    places = path if parent is None else list(parent.submodule_search_locations or [])
    there = [module.name for module in pkgutil.iter_modules(places)]
    close = difflib.get_close_matches(last, there, n=1)
    if close and (parent is not None or not package):
        return f"{name!r}; did you mean {'.'.join(filter(None, (package, close[0])))!r}?"
    return f"{name!r} here ({Path.cwd()}), nor on PYTHONPATH, nor installed"
