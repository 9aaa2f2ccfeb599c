"""Puts the marks into the modules of the program's own when they are imported."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from traincheck_instrument.current import Current
from traincheck_instrument.program.module_search import found_after
from traincheck_instrument.recorder.interruptions import is_interruption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    from traincheck_instrument.source import OwnFiles, Rewritten


class OwnModules(MetaPathFinder):
    """A finder that leaves the finding to the others, and has what is marked loaded with marks."""

    def __init__(self, own: OwnFiles, rewrite: Callable[[bytes, str], Rewritten]) -> None:
        """Prepare to follow the imports of a program.

        Args:
            own: Which files are the program's own.
            rewrite: Puts the marks into the source of a module with this file name.
        """
        self._own = own
        self._rewrite = rewrite

    def install(self) -> None:
        """Follow the imports from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as if this finder were not there."""
        if not self._own.may_hold(fullname, path):
            return None
        spec = found_after(self, fullname, path, target)
        if spec is not None and self._is_to_be_read(spec):
            spec.loader = _MarkingLoader(fullname, str(spec.origin), self._rewrite)
        return spec

    def _is_to_be_read(self, spec: ModuleSpec) -> bool:
        if type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return False
        try:
            return self._own.has(spec.name, spec.origin) and self._own.is_worth_reading(
                Path(spec.origin).read_bytes()
            )
        except OSError:  # the loader says so
            return False


class _MarkingLoader(SourceFileLoader):
    """Loads a module with its marks; one without any is loaded as always, from its cache."""

    def __init__(
        self, fullname: str, path: str, rewrite: Callable[[bytes, str], Rewritten]
    ) -> None:
        super().__init__(fullname, path)
        self._rewrite = rewrite

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module; with marks, it is neither read from nor put into a cache.

        A fault of ours never stops an import: the module is loaded as it stands.
        """
        code = self._marked()
        return super().get_code(fullname) if code is None else code

    def _marked(self) -> CodeType | None:
        try:
            rewritten = self._rewrite(self.get_data(self.path), self.path)
            if not rewritten.findings.has_marks:
                return None
            code = rewritten.code()
        except Exception as error:  # what is no Python is told by the import itself
            if is_interruption(error):
                raise
            return None
        Current.marks_steps_in_source |= any(
            loop.kind == "training" for loop in rewritten.findings.loops
        )
        return code
