"""The program is started by torchrun, which this command calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.program.module_search import find_module
from traincheck_launcher.starting.python import Python
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TORCHRUN = "torch.distributed.run"


@attrs.frozen
class Torchrun:
    """The way of `--nproc-per-node 2 --pyscript train.py`: each rank runs the entry script."""

    program: Python
    options: tuple[str, ...]  # as torchrun is given them: --nproc-per-node=2

    @property
    def may_leave(self) -> bool:
        """It ends with the program."""
        return False

    def check(self) -> None:
        """Need torch, which has torchrun, in the environment of this Python.

        Raises:
            ConfigError: it is not there.
        """
        if find_module(_TORCHRUN, sys.path) is None:
            raise ConfigError(
                f"{self.options[0].partition('=')[0]}: torchrun is needed, and {sys.executable} "
                "has no torch; install torch there"
            )

    def write(self, entry: Path) -> None:
        """Need nothing else."""

    def argv(self, entry: Path) -> list[str]:
        """Have torchrun start the entry script in each rank."""
        return [
            *(sys.executable, "-m", _TORCHRUN),
            *self.options,
            *(str(entry), *self.program.arguments),
        ]

    def environment(self, entry: Path) -> Mapping[str, str]:
        """Tell the entry script of each rank how the user named the program."""
        return self.program.environment(entry)

    def why_not_started(self, entry: Path) -> None:
        """Leave it to torchrun to say so."""
        del entry
