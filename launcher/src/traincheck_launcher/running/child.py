"""Runs the program as a shell would: in a process group of its own, with the terminal's signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_launcher.running.death_signal import set_death_signal
from traincheck_launcher.running.tee import Tee
from traincheck_trace_schema.errors import EXIT_UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from typing_extensions import Self

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_TELLS = (signal.SIGUSR1, signal.SIGUSR2)  # "save, and go on": programs say what they mean
_PASSED_ON = (*_ENDS, *_TELLS)
_DRAIN_SECONDS = 2.0  # for output still in the pipe; a process left behind may hold it for ever
_ONCE_SECONDS = 0.2  # a signal sent to a process and to its group arrives twice
# What is left of the group after a signal: how long to wait, and what to send before that.
_CLEARING = ((None, 5.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 2.0))


def run_child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    on_start: Callable[[], None] = lambda: None,
    on_end: Callable[[int], None] | None = None,
) -> int:
    """Run a program, copy its output into `log` too, and return its exit code.

    Signals to this process that end programs are passed on to the program's whole group, once; what
    is left of the group then is ended. SIGUSR1 and SIGUSR2 are passed on to the program alone.
    Those that this process ignores (`nohup`) stay ignored. A program that a signal ended gives
    128 + its number, as in a shell. If this process is killed, it is ended.

    Args:
        argv: The program, and its arguments.
        env: Its environment.
        log: Where its output is copied to.
        on_start: Is called when it has started.
        on_end: Is given its process group when it has ended; others may be left in that.
    """
    output_stops = signal.getsignal(signal.SIGTTOU)
    with log.open("ab", buffering=0) as copy, _Signals() as signals, _terminal() as terminal:
        start = _Start(terminal, output_stops, os.getpid(), set_death_signal())
        process = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=start,  # noqa: PLW1509  no thread runs yet
        )
        signals.pass_to(process.pid)
        on_start()  # it may start threads: no process is forked any more
        tees = [
            Tee(pipe, stream.fileno(), copy.fileno())
            for pipe, stream in ((process.stdout, sys.__stdout__), (process.stderr, sys.__stderr__))
            if pipe is not None and stream is not None
        ]
        code = _wait(process, terminal)
        if on_end is not None and not signals.has_ended:
            on_end(process.pid)
        if signals.has_ended:  # maybe meanwhile
            _clear(process.pid)
        for tee in tees:
            tee.finish(_DRAIN_SECONDS)
    return 128 - code if code < 0 else code


class _Signals:
    """Passes signals on to the group of the child."""

    def __init__(self) -> None:
        self.has_ended = False  # whether a signal was passed on that ends programs
        self._group: int | None = None
        self._waiting: list[int] = []  # came before the group was known
        self._last: dict[int, float] = {}
        before = {number: signal.getsignal(number) for number in _PASSED_ON}
        self._before = {
            number: handler for number, handler in before.items() if handler != signal.SIG_IGN
        }

    def __enter__(self) -> Self:
        for number in self._before:
            signal.signal(number, self._pass_on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def pass_to(self, group: int) -> None:
        """Say which group the signals are for; those that came before are sent now."""
        self._group = group
        for number in self._waiting:
            _pass(group, number)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last.get(number, -1.0) < _ONCE_SECONDS:
            return
        self._last[number] = now
        self.has_ended = self.has_ended or number in _ENDS
        if self._group is None:
            self._waiting.append(number)
        else:
            _pass(self._group, number)


@attrs.frozen
class _Start:
    """What the child does before it becomes the program: nothing of that may be too late."""

    terminal: int | None
    output_stops: Any  # what SIGTTOU did before it was ignored
    launcher: int
    set_death_signal: Callable[[int], object] | None

    def __call__(self) -> None:
        """Lead a group of its own, in the foreground, for no longer than the launcher lives."""
        os.setpgrp()
        if self.terminal is not None:
            _give(self.terminal, os.getpid())
            signal.signal(signal.SIGTTOU, self.output_stops)
        if self.set_death_signal is not None:
            self.set_death_signal(signal.SIGTERM)
            if os.getppid() != self.launcher:  # it was killed before that
                os._exit(EXIT_UNUSABLE)


@contextlib.contextmanager
def _terminal() -> Iterator[int | None]:
    """Yield the descriptor of the terminal, if it is ours; take it back in the end."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        yield None
        return
    try:
        if os.tcgetpgrp(terminal) != os.getpgrp():
            yield None
            return
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # or taking it back would stop us
        try:
            yield terminal
        finally:
            _give(terminal, os.getpgrp())
            signal.signal(signal.SIGTTOU, before)
    finally:
        os.close(terminal)


def _wait(process: subprocess.Popen[bytes], terminal: int | None) -> int:
    """Wait for the end of a child; with a terminal, stop and go on together with it (Ctrl-Z)."""
    if terminal is None:
        return process.wait()
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        if os.WSTOPSIG(status) not in {signal.SIGTTIN, signal.SIGTTOU}:
            _give(terminal, os.getpgrp())
            os.killpg(os.getpgrp(), signal.SIGSTOP)
        if os.tcgetpgrp(terminal) in {os.getpgrp(), process.pid}:  # not if it goes on with `bg`
            _give(terminal, process.pid)
        _send(process.pid, signal.SIGCONT)


def _give(terminal: int, group: int) -> None:
    with contextlib.suppress(OSError):  # the group is gone
        os.tcsetpgrp(terminal, group)


def _clear(group: int) -> None:
    """End what a signal left of a group."""
    for number, patience in _CLEARING:
        if number is not None:
            _send(group, number)
        until = time.monotonic() + patience
        while _send(group, 0):
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        else:
            return


def _pass(group: int, number: int) -> None:
    """Pass a signal on: to who leads the group alone, if the others may not know it."""
    if number in _TELLS:
        with contextlib.suppress(ProcessLookupError):
            os.kill(group, number)
    else:
        _send(group, number)


def _send(group: int, number: int) -> bool:
    """Send a signal to a group, and say whether there is one."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
