"""Tells the nearest line of user code behind a call."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType

_PATHS = sysconfig.get_paths()
_NOT_USER = tuple(
    os.path.join(path, "")  # noqa: PTH118  compared with the text of code objects
    for path in {_PATHS["stdlib"], _PATHS["platstdlib"], _PATHS["purelib"], _PATHS["platlib"]}
)
_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")  # noqa: PTH100, PTH118, PTH120


class SourceLines:
    """Numbers the lines of user code that were met, for this process."""

    def __init__(self) -> None:
        self._is_user: dict[CodeType, bool] = {}
        self._ids: dict[tuple[CodeType, int], int] = {}

    def caller(self, depth: int) -> tuple[FrameType, int] | None:
        """Return the frame `depth` levels above the caller's, and its line, if it is user code."""
        frame = sys._getframe(depth + 1)  # noqa: SLF001  the documented way to a caller's frame
        code = frame.f_code
        is_user = self._is_user.get(code)
        if is_user is None:
            is_user = self._is_user[code] = _is_user_file(code.co_filename)
        return (frame, frame.f_lineno) if is_user else None

    def nearest(self) -> tuple[FrameType, int] | None:
        """Return the nearest frame of user code above the caller."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame is not None and not _is_user_file(frame.f_code.co_filename):
            frame = frame.f_back
        return None if frame is None else (frame, frame.f_lineno)

    def number(self, frame: FrameType, line: int) -> tuple[int, bool]:
        """Return the number of a line, and whether it is met for the first time."""
        key = (frame.f_code, line)
        known = self._ids.get(key)
        if known is not None:
            return known, False
        self._ids[key] = len(self._ids)
        return self._ids[key], True


def _is_user_file(name: str) -> bool:
    return not name.startswith(("<", *_NOT_USER, _OWN))
