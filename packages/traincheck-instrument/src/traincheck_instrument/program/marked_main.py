"""Puts the marks into a script that runs as a module, by `runpy`, which `python -m` is made of."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from traincheck_instrument.program.marked_program import marked_code
from traincheck_instrument.program.module_search import found_after

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    from traincheck_instrument.settings import RecordingSettings

_MAIN = "__main__"  # of a package


def full_name(module: str, file: str) -> str:
    """Return the name of a module that is run: of a package, it is that of its `__main__`."""
    is_package = Path(file).stem == _MAIN and module.rpartition(".")[2] != _MAIN
    return f"{module}.{_MAIN}" if is_package else module


class MarkedMain(MetaPathFinder):
    """A finder that leaves the finding to the others, and has one module loaded with its marks."""

    def __init__(self, settings: RecordingSettings, name: str, file: str) -> None:
        """Put the marks in.

        Args:
            settings: What is marked.
            name: The full name of the module.
            file: Its path, as it is found when it is imported.

        Raises:
            OSError: the file cannot be read.
            SyntaxError: it is no Python.
        """
        self._name = name
        self._file = file
        # What is imported around the module, and before it, is followed from now on.
        self._code = marked_code(settings, Path(file).read_bytes(), file, name)

    def install(self) -> None:
        """Wait for the import."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module as if this finder were not there."""
        if fullname != self._name:
            return None
        spec = found_after(self, fullname, path, target)
        if (
            spec is not None
            and isinstance(spec.loader, SourceFileLoader)
            and spec.origin is not None
            and Path(spec.origin).samefile(self._file)
        ):
            spec.loader = _Loader(spec, self._code)
        return spec


class _Loader(SourceFileLoader):
    """Gives code with marks, once; after that, the module has the loader that it would have."""

    def __init__(self, spec: ModuleSpec, code: CodeType) -> None:
        super().__init__(spec.name, str(spec.origin))
        self._spec = spec
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """Return the code with its marks."""
        del fullname
        self._spec.loader = SourceFileLoader(self.name, self.path)
        return self._code
