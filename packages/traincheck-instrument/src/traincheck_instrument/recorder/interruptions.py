"""Tells exceptions by which the program cuts in while we are at work from faults of our own."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import TYPE_CHECKING

from traincheck_instrument.program.tracebacks import is_ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


def is_interruption(error: BaseException) -> bool:
    """Whether the program raised an exception, in a handler of a signal or a trace function.

    Python gives both the frame that they interrupt. What else of the program would run while we are
    at work was called by us, and by mistake: what it raises is a fault of ours.
    """
    if not isinstance(error, Exception):
        return True
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        interrupted, traceback = traceback.tb_frame, traceback.tb_next
        if any(one is interrupted for one in _frames_in(traceback)):
            return True
    return False


def _frames_in(traceback: TracebackType) -> Iterator[FrameType]:
    """Yield the frames that a function was given, one by one or among the rest."""
    frame = traceback.tb_frame
    # What is no function has a namespace of the program's making.
    if is_ours(traceback) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return
    for value in frame.f_locals.values():
        for one in value if type(value) is tuple else (value,):
            if type(one) is FrameType:
                yield one
