"""The program is started by a shell script of the user's, which runs unchanged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_launcher.output.folder import OutputFolder
from traincheck_launcher.starting.path_shims import NAME, write_shims
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

SITE_HOOK = Path(__file__).parents[1] / "site_hook"
_LONGEST = 4096  # bytes of a first line
_ENV = "env"


@attrs.frozen
class ShellScript:
    """The way of `--shscript run.sh`: whatever runs the script below it runs the entry script."""

    path: Path
    script: Path  # the Python script that it starts
    arguments: tuple[str, ...]

    @property
    def may_leave(self) -> bool:
        """It may start the program in the background."""
        return True

    def check(self) -> None:
        """Need the file, and the shell that runs it.

        Raises:
            ConfigError: one of them is not there.
        """
        if self.path.is_dir():
            raise ConfigError(f"--shscript: {self.path} is a folder; name the shell script")
        if not self.path.exists():
            raise ConfigError(f"--shscript: there is no file {self.path}")
        if not os.access(self.path, os.R_OK):
            raise ConfigError(f"--shscript: {self.path} cannot be read: you may not read it")
        if not self._runs_itself():
            if shutil.which("bash") is None:
                raise ConfigError("--shscript: bash, which runs it, is not on PATH; install it")
        elif shutil.which(self._interpreter()) is None:
            raise ConfigError(
                f"--shscript: {self.path}:1: {self._interpreter()!r}, which is to run it, is not "
                "there; install it, or mend the line"
            )

    def write(self, entry: Path) -> None:
        """Write what finds Python where the script sets `PYTHONPATH`.

        Raises:
            OSError: it can't be written.
        """
        if self._sets_python_path():
            write_shims(entry.parent / NAME, SITE_HOOK, os.environ.get("PATH", os.defpath))

    def argv(self, entry: Path) -> list[str]:
        """Run it as typing its name would if it can be executed, otherwise with bash."""
        del entry
        if self._runs_itself():
            # Without a slash, it would be looked for on PATH.
            name = str(self.path) if len(self.path.parts) > 1 else f"./{self.path}"
            return [name, *self.arguments]
        return ["bash", str(self.path), *self.arguments]

    def environment(self, entry: Path) -> Mapping[str, str]:
        """Have each Python below it look whether it is about to run the script."""
        path = os.environ.get("PYTHONPATH")
        commands = os.environ.get("PATH", os.defpath)
        return {
            **({"PATH": f"{entry.parent / NAME}:{commands}"} if self._sets_python_path() else {}),
            "PYTHONPATH": os.pathsep.join([str(SITE_HOOK), *([path] if path else [])]),
            "TRAINCHECK_SCRIPT": str(self.script.absolute()),
            "TRAINCHECK_ENTRY": str(entry),
        }

    def why_not_started(self, entry: Path) -> str | None:
        """Say so if no Python below it was about to run the script."""
        if OutputFolder(entry.parent).started.exists():
            return None
        return (
            f"{self.path} started no Python process that runs {self.script} "
            "(not followed are python -I, -S and -E, a program on its stdin, and a PYTHONPATH that "
            "another file sets anew)"
        )

    def _sets_python_path(self) -> bool:
        return b"PYTHONPATH" in self.path.read_bytes()

    def _runs_itself(self) -> bool:
        return bool(self._first_line()) and os.access(self.path, os.X_OK)

    def _interpreter(self) -> str:
        """Return what the first line names, which is a path, or a command after `env`."""
        words = self._first_line().split(" ")
        words = [word for word in words if word]
        if len(words) > 1 and Path(words[0]).name == _ENV:
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return words[0] if words else ""

    def _first_line(self) -> str:
        """Return what stands behind `#!`, or nothing."""
        with self.path.open("rb") as file:
            line = file.readline(_LONGEST)
        return os.fsdecode(line[2:]).strip(" \t\n") if line.startswith(b"#!") else ""
