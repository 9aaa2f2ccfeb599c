"""Wakes a thread that sleeps."""

from __future__ import annotations

import contextlib
import threading


class Wake:
    """A wake-up for one thread.

    A signal handler of the program may interrupt `set` and call it again, in the same thread. That
    of `threading.Event` would wait for itself then.
    """

    def __init__(self) -> None:
        self._sleeper = threading.Lock()  # held while the thread has nothing to wake up for
        self._sleeper.acquire()

    def set(self) -> None:
        """Wake the thread, or keep it from its next sleep."""
        if self._sleeper.locked():
            with contextlib.suppress(RuntimeError):  # somebody else was faster
                self._sleeper.release()

    def wait(self, seconds: float) -> None:
        """Sleep until somebody wakes the thread, or for so long."""
        self._sleeper.acquire(timeout=seconds)
