"""Which files are a program's own: those in the folder of its script, and what the user names."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_PATHS = sysconfig.get_paths()
_STANDARD = tuple(
    os.path.join(os.path.realpath(_PATHS[name]), "")  # noqa: PTH118  compared as text
    for name in ("stdlib", "platstdlib")
)
# What a file has to hold for a loop of it, or a model, to be worth looking for.
_TRAINS = re.compile(rb"\.step\b|optimizer_step\b|\.backward\b|no_grad|inference_mode|\.eval\(")


@attrs.frozen
class OwnFiles:
    """The files of a program that are rewritten when they are imported."""

    folder: str  # of the script
    packages: tuple[str, ...] = ()  # that the user names beside torch, as `mypackage.models`
    models: tuple[str, ...] = ()  # names that are tracked there

    def may_hold(self, module: str, path: Iterable[str] | None) -> bool:
        """Whether a module may be one of them, so that it is worth finding.

        Args:
            module: Its full name.
            path: Where it is looked for: that of the package around it, if there is one.
        """
        if self._is_named(module):
            return True
        if path is not None:
            return any(_is_below(entry, self.folder) for entry in path)
        places = (
            os.path.join(entry, module)  # noqa: PTH118  at each import
            for entry in (self.folder, *sys.path)
            if _is_below(entry, self.folder)
        )
        return any(os.path.isdir(one) or os.path.isfile(f"{one}.py") for one in places)  # noqa: PTH112, PTH113

    def has(self, module: str, file: str) -> bool:
        """Whether the file of a module is one of them; nothing that is installed is."""
        real = os.path.realpath(file)
        return (
            (_is_below(real, self.folder) or self._is_named(module))
            and file.endswith(".py")
            and not (_INSTALLED.search(real) or real.startswith(_STANDARD))
        )

    def is_worth_reading(self, source: bytes) -> bool:
        """Whether a file may hold anything to mark; most do not, and need no analysis."""
        return bool(_TRAINS.search(source)) or any(
            name.rpartition(".")[2].encode() in source for name in self.models
        )

    def folders(self) -> tuple[str, ...]:
        """Return the folders in which the modules of the program are looked for."""
        found = [self.folder]
        for root in dict.fromkeys(name.partition(".")[0] for name in self.packages):
            spec = PathFinder.find_spec(root)
            places = [] if spec is None else list(spec.submodule_search_locations or [])
            found += [os.path.dirname(place) for place in places if self.has(root, f"{place}/_.py")]  # noqa: PTH120
        return tuple(dict.fromkeys(found))

    def _is_named(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self.packages)


def _is_below(path: object, folder: str) -> bool:
    if not isinstance(path, str):  # what stands in a search path is up to the program
        return False
    path = os.path.abspath(path)  # noqa: PTH100  links stay
    return path == folder or path.startswith(os.path.join(folder, ""))  # noqa: PTH118
