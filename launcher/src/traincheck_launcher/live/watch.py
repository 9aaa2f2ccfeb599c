"""Tells on the terminal what becomes of a check while the program runs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.progress_file import read_progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LOOK_SECONDS = 0.2
_STOPPING_SECONDS = 10.0  # after which it is told that the program has not stopped


class Watch(threading.Thread):
    """Looks now and then, until the program has ended; tells each thing once."""

    def __init__(self, poll: Callable[[], int | None], progress: Path, *, stops: bool) -> None:
        """Prepare it.

        Args:
            poll: Gives the exit code of the check, or None while it is at work.
            progress: The file in which it tells how far it is.
            stops: Whether the program is to stop when the check fails.
        """
        super().__init__(name="traincheck-watch", daemon=True)
        self._poll = poll
        self._progress = progress
        self._stops = stops
        self._has_ended = threading.Event()  # the program

    def end(self) -> None:
        """Look no more."""
        self._has_ended.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Look and tell."""
        while not self._has_ended.wait(_LOOK_SECONDS):
            if (code := self._poll()) is not None:
                _tell(f"the check has ended {_how(code)}; the program goes on unchecked")
                return
            if self._stops and self._fails():
                _tell("the check has found what it stops for: the program ends at its next step")
                self._attend_stop()
                return

    def _fails(self) -> bool:
        try:
            return read_progress(self._progress).fails
        except ConfigError:
            return False

    def _attend_stop(self) -> None:
        until = time.monotonic() + _STOPPING_SECONDS
        if not self._has_ended.wait(until - time.monotonic()):
            _tell("the program has come to no step since then; Ctrl-C ends it")


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _tell(what: str) -> None:
    click.echo(f"traincheck: {what}", err=True)
