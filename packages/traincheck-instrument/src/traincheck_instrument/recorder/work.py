"""What the recorder does in a thread of the program: not recorded, and no matter of training."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.recorder.faults import Faults
from traincheck_instrument.recorder.modes import without_modes
from traincheck_instrument.recorder.open_calls import ThreadState
from traincheck_instrument.recorder.overhead import Overhead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@attrs.define(eq=False)
class Work:
    """Does what is asked for, one thing at a time in each thread.

    While it is at work in a thread, wrapped functions called there are not recorded, and marks set
    there have to wait: a signal handler of the program may set one at any moment.
    """

    thread: ThreadState
    faults: Faults
    overhead: Overhead

    def take(self, doing: str, act: Callable[[], None]) -> None:
        """Do what a mark asks for, or leave it for when the work that it interrupted is done."""
        thread = self.thread
        if thread.is_busy:
            thread.postponed.append(lambda: self.take(doing, act))
            return
        began_ns = time.monotonic_ns()
        try:
            thread.is_busy = True
            with without_modes():
                act()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.faults.contain(doing, error)
        finally:
            thread.is_busy = False
            self.overhead.threads_ns += time.monotonic_ns() - began_ns
            if thread.postponed:
                self.take_postponed()

    def take_postponed(self) -> None:
        """Do what had to wait."""
        postponed = self.thread.postponed
        while postponed:
            postponed.popleft()()

    @contextmanager
    def contained(self, doing: str) -> Iterator[None]:
        """Keep a fault of one part from the rest of the work."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.faults.contain(doing, error)
