"""The output folder: what is in it, and when it may be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.gate.stopping import StopNote
from traincheck_instrument.process.failure import FAILURES
from traincheck_launcher.live.output import LiveOutput
from traincheck_launcher.output.copies import COPIES_NAME, delete_copies
from traincheck_launcher.output.latest import PREFIX
from traincheck_launcher.starting.path_shims import NAME as SHIMS
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.progress_file import PROGRESS_NAME
from traincheck_trace_schema.records import SHARD_NAMES
from traincheck_trace_schema.results_file import (
    FAILED_NAME,
    NOT_TRIGGERED_NAME,
    PASSED_NAME,
    REPORT_NAME,
    SUMMARY_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = (
    *SHARD_NAMES,
    "_traincheck_*.py",
    "traincheck-entry.py",
    "recording.json",
    "plan.json",
    "env_dump.txt",
    "program_output*.txt",
    ".traincheck.started",
    f"{SHIMS}/*",
    FAILURES,
)
_OF_CHECK = (  # in the folder of a check beside the run
    *(SUMMARY_NAME, FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME, REPORT_NAME),
    PROGRESS_NAME,
)
_SHOWN = 3  # names in a message


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

    @property
    def started(self) -> Path:
        """There while a program runs that a shell script has started."""
        return self.path / ".traincheck.started"

    @property
    def copies(self) -> Path:
        """Copies of the files beside the script."""
        return self.path / COPIES_NAME

    @property
    def manifest(self) -> Path:
        """Which files were copied."""
        return self.path / f"{COPIES_NAME}.json"

    def output_of(self, part: str) -> Path:
        """Return where what a part of the run prints goes: a rank, say, or a machine."""
        return self.path / f"program_output_{part}.txt" if part else self.program_output

    def outputs(self) -> Iterator[Path]:
        """Yield what the parts of a run printed."""
        yield from sorted(self.path.glob("program_output*.txt"))

    def rewritten(self, script: Path) -> Path:
        """Return where the script with its marks goes, for people to read."""
        return self.path / f"_traincheck_{script.stem}.py"

    def traces(self) -> Iterator[Path]:
        """Yield the traces, one a process, by name."""
        yield from sorted(path for pattern in SHARD_NAMES for path in self.path.glob(pattern))

    def make(self) -> None:
        """Make the folder, if it is not there.

        Raises:
            ConfigError: it is no folder, or cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise ConfigError(f"--output-dir: {self.path} is a file, not a folder") from error
        except OSError as error:
            raise self.unwritable(error) from error

    def unwritable(self, error: OSError) -> ConfigError:
        """Return what is told if the folder cannot be written."""
        return ConfigError(f"--output-dir: {self.path} cannot be written: {error.strerror}")

    def prepare(self, *, overwrite: bool) -> None:
        """Make sure that the folder can be used.

        Args:
            overwrite: Delete what an earlier collection left in it, and nothing else.

        Raises:
            ConfigError: something is in it, or it cannot be written.
        """
        try:
            if overwrite:
                self._delete_ours()
            elif any(self.traces()):
                raise ConfigError(
                    f"--output-dir: {self.path} holds the traces of an earlier run; "
                    "choose another folder, or give --overwrite to delete them"
                )
            elif names := self._visible():
                more = ", ..." if len(names) > _SHOWN else ""
                raise ConfigError(
                    f"--output-dir: {self.path} is not empty ({', '.join(names[:_SHOWN])}{more}); "
                    "choose another folder, or give --overwrite, which deletes only what an "
                    "earlier run left there"
                )
            self.program_output.write_bytes(b"")
        except OSError as error:
            raise self.unwritable(error) from error

    def _visible(self) -> list[str]:
        """Return what is in it, without what is hidden: that of file systems and of ours."""
        return sorted(path.name for path in self.path.iterdir() if not path.name.startswith("."))

    def _delete_ours(self) -> None:
        delete_copies(self.copies, self.manifest)
        ours = [path for pattern in _OURS for path in self.path.glob(pattern)]
        check = LiveOutput(self.path)
        for path in (*ours, *(check.results / name for name in _OF_CHECK)):
            if path.is_file():
                path.unlink()
        StopNote.remove(check.progress)


def default_name(program: str, suffix: str) -> str:
    """Return the name of the folder for a run.

    Args:
        program: What is run.
        suffix: What tells the run from others of the program.
    """
    return f"{PREFIX}{program}_{suffix}"


def from_here(file: str | Path) -> str:
    """Return a path as short as it can be typed from the current folder."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
