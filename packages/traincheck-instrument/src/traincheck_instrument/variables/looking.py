"""Which thread looks at the variables, and when none may."""

from __future__ import annotations

import threading
import weakref

import attrs
import torch

from traincheck_instrument.recorder.journal import Journal
from traincheck_instrument.recorder.open_calls import ThreadState


@attrs.define(eq=False)
class Looking:
    """Lets one thread look at the variables: another might free what it reads.

    It is the one that trains; until one does, and after that one has ended, the first that asks. A
    thread of torch, which works for one that waits, leaves the looking to that. If the program
    trains in two at a time, nobody looks any more.
    """

    _thread: ThreadState
    _journal: Journal
    _ordinal: int | None = None  # of the thread that looks
    _looker: weakref.ref[threading.Thread] | None = None  # that thread; None: it is not Python's
    _has_trained: bool = False  # it has
    _has_ended: bool = False

    def is_allowed(self, *, trains: bool = False) -> bool:
        """Whether this thread may look now.

        Args:
            trains: It is about to do what only a thread does that trains.
        """
        if self._thread.ordinal != self._ordinal and not self._takes_over(trains=trains):
            return False
        self._has_trained |= trains
        return not (self._has_ended or is_capturing())

    def _takes_over(self, *, trains: bool) -> bool:
        """Whether this thread looks from now on, in place of the one that did."""
        is_of_program = self._thread.is_of_program
        if self._ordinal is not None:
            if not is_of_program:
                return False
            if self._is_there() and (self._has_trained or not trains):
                if trains and not self._has_ended:
                    self._has_ended = True
                    detail = "several threads train: variables are not looked at"
                    self._journal.gap("fault", detail)
                return False
        self._ordinal = self._thread.ordinal
        # To ask for a thread that is none of Python's would make one of it.
        self._looker = weakref.ref(threading.current_thread()) if is_of_program else None
        self._has_trained = False
        return True

    def _is_there(self) -> bool:
        """Whether the thread that looks has not ended, as far as Python knows."""
        if self._looker is None:
            return True
        looker = self._looker()
        return looker is not None and looker.is_alive()


def is_capturing() -> bool:
    """Whether a CUDA graph is being captured, which to copy from the device would spoil."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return False
    return torch.cuda.is_current_stream_capturing()
