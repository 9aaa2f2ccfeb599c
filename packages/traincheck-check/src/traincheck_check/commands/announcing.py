"""Tells other programs how far a check has come that follows a run: in a file that is replaced."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from traincheck_check.judging.exit_code import Threshold
from traincheck_check.judging.following import Following
from traincheck_trace_schema.cli import note
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.progress import Progress
from traincheck_trace_schema.progress_file import write_progress

_BEAT_SECONDS = 1.0  # by which it is known that the check goes on


@attrs.define(eq=False)
class Announcing:
    """Writes the progress of a check whenever it has changed; without a path, nothing."""

    _path: Path | None
    _following: Following
    _limits: Threshold
    _clock: Callable[[], float] = time.monotonic
    _host: str = attrs.field(init=False, factory=socket.gethostname)
    _written: Progress | None = attrs.field(init=False, default=None)
    _violations: int = attrs.field(init=False, default=0)  # for which it was asked if it fails
    _fails: bool = attrs.field(init=False, default=False)
    _beats: int = attrs.field(init=False, default=0)
    _due: float = attrs.field(init=False, default=0.0)
    _has_trouble: bool = attrs.field(init=False, default=False)

    def begin(self) -> None:
        """Tell that there is a check.

        Raises:
            ConfigError: The file can't be written.
        """
        if self._path is not None:
            self._write(self._path, self._progress(is_running=True))

    def announce(self, *, is_running: bool = True) -> None:
        """Tell what is new, or that the check goes on; a disk that is full may have room again."""
        if self._path is None:
            return
        progress = self._progress(is_running=is_running)
        if progress == self._written and self._clock() < self._due:
            return
        try:
            self._write(self._path, progress)
        except ConfigError as error:
            if not self._has_trouble:
                self._has_trouble = True
                note(f"--progress: {error}")

    def _write(self, path: Path, progress: Progress) -> None:
        write_progress(path, attrs.evolve(progress, beat=self._beats))
        self._beats += 1
        self._written, self._due = progress, self._clock() + _BEAT_SECONDS

    def _progress(self, *, is_running: bool) -> Progress:
        following = self._following
        return Progress(
            run_id=following.run.run_id,
            host=self._host,
            pid=os.getpid(),
            beat=0,
            running=is_running,
            violations=following.violations,
            fails=self._is_failing(),
            awaited=following.run.awaited,
            processes=following.judged(),
        )

    def _is_failing(self) -> bool:
        """Whether so much is broken that the check fails; once it does, it stays so."""
        violations = self._following.violations
        if not self._fails and violations != self._violations:
            self._violations = violations
            failed, new = self._following.broken()
            is_reached = self._limits.is_reached(failed=failed, new=new)
            self._fails = is_reached and not self._limits.exit_zero
        return self._fails
