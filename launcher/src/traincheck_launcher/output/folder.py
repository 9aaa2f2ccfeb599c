"""The output folder: what is in it, and when it may be used."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.records import SHARD_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = (
    *SHARD_NAMES,
    "_traincheck_*.py",
    "traincheck-entry.py",
    "recording.json",
    "plan.json",
    "env_dump.txt",
    "program_output.txt",
)


@attrs.frozen
class OutputFolder:
    """A folder with the files that a collection writes."""

    path: Path

    @property
    def entry(self) -> Path:
        """The script that runs in place of the user's."""
        return self.path / "traincheck-entry.py"  # no script's rewritten copy is called so

    @property
    def settings(self) -> Path:
        """What the recording processes are told."""
        return self.path / "recording.json"

    @property
    def plan(self) -> Path:
        """What is to be recorded."""
        return self.path / "plan.json"

    @property
    def environment(self) -> Path:
        """Arguments, versions, environment."""
        return self.path / "env_dump.txt"

    @property
    def program_output(self) -> Path:
        """What the program printed."""
        return self.path / "program_output.txt"

    def rewritten(self, script: Path) -> Path:
        """Return where the script with its marks goes, for people to read."""
        return self.path / f"_traincheck_{script.stem}.py"

    def traces(self) -> Iterator[Path]:
        """Yield the traces, one a process, by name."""
        yield from sorted(path for pattern in SHARD_NAMES for path in self.path.glob(pattern))

    def prepare(self, *, overwrite: bool) -> None:
        """Make the folder, or make sure that it can be used.

        Args:
            overwrite: Delete what an earlier collection left in it, and nothing else.

        Raises:
            ConfigError: it holds traces, is no folder, or cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if overwrite:
                self._delete_ours()
            elif any(self.traces()):
                raise ConfigError(
                    f"--output-dir: {self.path} holds the traces of an earlier run; "
                    "choose another folder, or give --overwrite to delete them"
                )
            self.program_output.write_bytes(b"")
        except FileExistsError as error:
            raise ConfigError(f"--output-dir: {self.path} is a file, not a folder") from error
        except OSError as error:
            raise ConfigError(
                f"--output-dir: {self.path} cannot be written: {error.strerror}"
            ) from error

    def _delete_ours(self) -> None:
        for pattern in _OURS:
            for path in self.path.glob(pattern):
                if path.is_file():
                    path.unlink()


def default_name(script: Path) -> str:
    """Return the name of the folder for a run that begins now."""
    return f"traincheck_run_{script.stem}_{time.strftime('%Y%m%d-%H%M%S')}"


def from_here(file: str | Path) -> str:
    """Return a path as short as it can be typed from the current folder."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
