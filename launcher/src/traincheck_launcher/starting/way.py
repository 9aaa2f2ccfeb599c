"""What a way to start a program has to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Way(Protocol):
    """A way in which a program is started, so that the entry script runs in its place."""

    @property
    def may_leave(self) -> bool:
        """Whether what it starts may end before the program does."""

    def check(self) -> None:
        """Make sure, before anything runs, that what it needs is there.

        Raises:
            ConfigError: something is not.
        """

    def write(self, entry: Path) -> None:
        """Write what else it needs, beside the entry script.

        Raises:
            OSError: it can't be written.
        """

    def argv(self, entry: Path) -> list[str]:
        """Return the command line of the process to run; `entry` is the entry script."""

    def environment(self, entry: Path) -> Mapping[str, str]:
        """Return the variables that this process needs beside the user's."""

    def why_not_started(self, entry: Path) -> str | None:
        """Say, after the run, why the program was never started; None if it was."""
