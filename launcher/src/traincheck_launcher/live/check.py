"""The check that follows a run: its process, from before the program begins until after its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Protocol

import attrs
import click

from traincheck_launcher.live.command import checker_command
from traincheck_launcher.live.ending import LiveEnding
from traincheck_launcher.live.output import LiveOutput
from traincheck_launcher.live.watch import Watch
from traincheck_trace_schema.cli import warn
from traincheck_trace_schema.errors import EXIT_CLEAN, EXIT_UNUSABLE, ConfigError, TraincheckError
from traincheck_trace_schema.progress_file import read_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from traincheck_launcher.options import CollectOptions

_BEGINNING_SECONDS = 120.0  # that it may take to read the invariants
_SILENCE_SECONDS = 60.0  # of one that is to come to its end
_ENDING_SECONDS = 5.0  # of one that was told to end at once
_LOOK_SECONDS = 0.05


class Check(Protocol):
    """What a collection has to do for a check."""

    def watch(self) -> None:
        """Take note that the program runs now."""

    def finish(self, program: int, is_last: Callable[[], bool]) -> LiveEnding:
        """Come to an end, now that the program has ended.

        Args:
            program: Its exit code.
            is_last: Whether all other commands that take part in the run have ended.
        """


@contextlib.contextmanager
def checked(
    options: CollectOptions, output: LiveOutput, run_id: str, *, is_here: bool
) -> Iterator[Check]:
    """Check a run while it goes on, if that is asked for.

    Args:
        options: What is asked for.
        output: Where results go.
        run_id: Which run it is.
        is_here: Whether it is this command that does it, of those that take part in the run.

    Raises:
        ConfigError: the check can't be started, or does not begin.
    """
    if not (options.checks and is_here):
        yield _NoCheck(output if options.checks else None)
        return
    check = _LiveCheck(output, _start(options, output, run_id), options.on_violation)
    try:
        check.await_begin()
        yield check
    except TraincheckError:  # nothing has run, so there is nothing to judge
        check.kill()
        raise
    finally:
        check.end()


@attrs.frozen
class _NoCheck:
    """Nothing is checked here; another command may check what this one runs."""

    _output: LiveOutput | None

    def watch(self) -> None:
        """Watch nothing."""

    def finish(self, program: int, is_last: Callable[[], bool]) -> LiveEnding:
        """Leave it at the program's exit code."""
        del is_last
        return LiveEnding(output=self._output, program=program, check=EXIT_CLEAN)


@attrs.define(eq=False)
class _LiveCheck:
    """A process that checks, which is at work."""

    _output: LiveOutput
    _process: subprocess.Popen[bytes]
    _on_violation: str
    _watch: Watch | None = None

    def await_begin(self) -> None:
        """Wait until it can take records.

        Raises:
            ConfigError: it takes too long.
        """
        until = time.monotonic() + _BEGINNING_SECONDS
        while self._beat() is None:
            if (code := self._process.poll()) is not None:
                raise click.exceptions.Exit(max(code, EXIT_UNUSABLE))  # it has said why
            if time.monotonic() > until:
                raise ConfigError(
                    f"--check: the check has not begun within {_BEGINNING_SECONDS:.0f} s"
                )
            time.sleep(_LOOK_SECONDS)

    def watch(self) -> None:
        """Tell on the terminal what becomes of it, from now on until the program has ended."""
        is_to_stop = self._on_violation == "stop"
        self._watch = Watch(self._process.poll, self._output.progress, stops=is_to_stop)
        self._watch.start()

    def finish(self, program: int, is_last: Callable[[], bool]) -> LiveEnding:
        """Let it judge all that there is; one that hangs is ended."""
        self._end_watch()
        with _first_term_noted() as has_come:
            while self._process.poll() is None and not (is_last() or has_come()):
                time.sleep(_LOOK_SECONDS)
            self._say_that_nothing_comes()
            self._await_end()
        self.end()
        return LiveEnding(output=self._output, program=program, check=self._process.wait())

    def end(self) -> None:
        """End it now, if it is still there."""
        self._end_watch()
        self._say_that_nothing_comes()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_ENDING_SECONDS)

    def _await_end(self) -> None:
        beat, since = self._beat(), time.monotonic()
        while self._process.poll() is None:
            time.sleep(_LOOK_SECONDS)
            if (now := self._beat()) != beat:
                beat, since = now, time.monotonic()
            if time.monotonic() - since > _SILENCE_SECONDS:
                warn(f"the check has told nothing for {_SILENCE_SECONDS:.0f} s, and is ended")
                return

    def kill(self) -> None:
        """End it now, without a word from it."""
        self._process.kill()
        self._process.wait()

    def _beat(self) -> int | None:
        """Return how often it has told its progress; None if it has not."""
        try:
            progress = read_progress(self._output.progress)
        except ConfigError:
            return None
        return progress.beat if progress.pid == self._process.pid else None

    def _say_that_nothing_comes(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.end()


@contextlib.contextmanager
def _first_term_noted() -> Iterator[Callable[[], bool]]:
    """Go on at a first SIGTERM, and say whether it has come; a second one acts as before.

    torchrun sends it to all that it has started as soon as one ends, and what is found is told yet.
    """
    signals: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        signals.append(number)
        signal.signal(number, before)

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: bool(signals)
    finally:
        signal.signal(signal.SIGTERM, before)


def _start(options: CollectOptions, output: LiveOutput, run_id: str) -> subprocess.Popen[bytes]:
    # What it says must not mix with what the program prints for others to read.
    stream = subprocess.DEVNULL if sys.__stderr__ is None else sys.__stderr__.fileno()
    return subprocess.Popen(
        checker_command(options, output, run_id),
        stdin=subprocess.PIPE,
        stdout=stream,
        stderr=stream,
        env=dict(os.environ),
        start_new_session=True,  # the terminal's Ctrl-C is for the program
    )
