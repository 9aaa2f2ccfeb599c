"""Finds modules without importing one, nor the packages around it."""

from __future__ import annotations

import sys
from importlib.machinery import BuiltinImporter, PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.abc import MetaPathFinder
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def find_module(name: str, path: Iterable[str]) -> ModuleSpec | None:
    """Return where a module is, if it is there.

    Args:
        name: Its full name.
        path: The folders in which its outermost package is looked for.
    """
    root, *rest = name.split(".")
    spec = _find_root(root, [*path])
    for part in rest:
        places = None if spec is None else spec.submodule_search_locations
        # By its last name alone: a folder without `__init__` would ask for what imports it.
        spec = None if places is None else PathFinder.find_spec(part, [*places])
    return spec


def found_after(
    finder: MetaPathFinder, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """Return what the finders that stand behind this one on `sys.meta_path` find."""
    behind = list(sys.meta_path)
    if finder in behind:  # otherwise somebody else asks it for what it adds
        del behind[: behind.index(finder) + 1]
    for one in behind:
        spec = one.find_spec(fullname, path, target) if hasattr(one, "find_spec") else None
        if spec is not None:
            return spec
    return None


def _find_root(name: str, path: list[str]) -> ModuleSpec | None:
    if not name.isidentifier():
        return None
    if name in sys.builtin_module_names:  # which older Pythons find in no path
        return BuiltinImporter.find_spec(name)
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except (ImportError, KeyError, ValueError):  # a finder of somebody else's may fail
            continue
        if spec is not None:
            return spec
    return None
