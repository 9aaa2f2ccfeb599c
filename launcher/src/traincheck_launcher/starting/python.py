"""The program is started by Python: the script, or a module as `python -m` does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.entry import ARGV0, MODULE

if TYPE_CHECKING:
    from collections.abc import Mapping


@attrs.frozen
class Python:
    """The way of `--pyscript train.py` and `--module pkg.train`."""

    script: Path
    module: str | None  # the name that the script is run by, if it runs as a module
    arguments: tuple[str, ...]

    @property
    def may_leave(self) -> bool:
        """It ends with the program."""
        return False

    def check(self) -> None:
        """Need nothing beside the program."""

    def write(self, entry: Path) -> None:
        """Need nothing else."""

    def argv(self, entry: Path) -> list[str]:
        """Run the entry script with this Python."""
        return [sys.executable, str(entry), *self.arguments]

    def environment(self, entry: Path) -> Mapping[str, str]:
        """Tell the entry script how the user named the program."""
        del entry
        return {ARGV0: str(self.script)} if self.module is None else {MODULE: self.module}

    def why_not_started(self, entry: Path) -> None:
        """Python starts what it is given."""
        del entry
