"""Takes the frames of TrainCheck out of tracebacks, so that they are what they would be without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_instrument.home import HOME

if TYPE_CHECKING:
    from types import CodeType, TracebackType


def without_ours(error: BaseException, program: CodeType) -> None:
    """Change the tracebacks of an exception, and of those that led to it, to the program's own.

    Args:
        error: The exception that ended the program.
        program: The code of the program: the frames above it started it.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _kept(_below(one.__traceback__, program))
            waiting += [one.__cause__, one.__context__]


def _below(traceback: TracebackType | None, program: CodeType) -> TracebackType | None:
    """Leave out what is above the program, if the program is in it."""
    start = traceback
    while start is not None and start.tb_frame.f_code is not program:
        start = start.tb_next
    return start or traceback


def _kept(traceback: TracebackType | None) -> TracebackType | None:
    """Unlink the frames of wrappers."""
    while traceback is not None and is_ours(traceback):
        traceback = traceback.tb_next
    last = traceback
    while last is not None:
        after = last.tb_next
        while after is not None and is_ours(after):
            after = after.tb_next
        last.tb_next = after
        last = after
    return traceback


def is_ours(traceback: TracebackType) -> bool:
    """Whether a frame runs code of ours."""
    return traceback.tb_frame.f_code.co_filename.startswith(HOME)
