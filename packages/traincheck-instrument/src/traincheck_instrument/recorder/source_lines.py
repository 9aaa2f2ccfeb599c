"""Tells the nearest line of user code behind a call."""

from __future__ import annotations

import os
import sys
import sysconfig
import weakref
from types import CodeType
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_instrument.home import HOME

if TYPE_CHECKING:
    from types import FrameType

_PATHS = sysconfig.get_paths()
_NOT_USER = tuple(
    os.path.join(path, "")  # noqa: PTH118  compared with the text of code objects
    for path in {_PATHS["stdlib"], _PATHS["platstdlib"], _PATHS["purelib"], _PATHS["platlib"]}
)


NOT_USER = -1  # in place of the number of a line
Line: TypeAlias = tuple[str, int, str]  # file, line, function; as they are told


@attrs.define(eq=False)
class _Code:
    """What is known of a code object."""

    reference: weakref.ref[CodeType]
    is_user: bool
    places: dict[int, int] = attrs.field(factory=dict)  # instruction: number of its line


class SourceLines:
    """Numbers the lines of user code that were met, for this process; keeps no code alive."""

    def __init__(self) -> None:
        # A program may make the code of one line again and again.
        self._numbers: dict[Line, int] = {}
        # By id: the hash of a code object takes in all that it holds.
        self._codes: dict[int, _Code] = {}

    def of(self, frame: FrameType) -> int | None:
        """Return the number of the line at which a frame stands; None if it was not met yet."""
        known = self._codes.get(id(frame.f_code))
        if known is None:
            return None
        # To find the line of an instruction takes longer than all this.
        return known.places.get(frame.f_lasti) if known.is_user else NOT_USER

    def place(self, frame: FrameType, number: int) -> None:
        """Remember the number of the line at which a frame stands."""
        self._known(frame.f_code).places[frame.f_lasti] = number

    def is_user(self, frame: FrameType) -> bool:
        """Whether a frame runs user code."""
        return self._known(frame.f_code).is_user

    def nearest(self, frame: FrameType | None = None) -> tuple[FrameType, int] | None:
        """Return the nearest frame of user code, from one on (None: the caller's), and its line."""
        frame = frame or sys._getframe(1)  # noqa: SLF001  the documented way to a frame
        while frame is not None and not self.is_user(frame):
            frame = frame.f_back
        return None if frame is None else (frame, frame.f_lineno)

    def number(self, line: Line) -> int | None:
        """Return the number of a line; None if it has none yet."""
        return self._numbers.get(line)

    @property
    def next_number(self) -> int:
        """The number that the next line gets."""
        return len(self._numbers)

    def add(self, line: Line) -> None:
        """Give a line the next number."""
        self._numbers[line] = self.next_number

    def _known(self, code: CodeType) -> _Code:
        key = id(code)
        known = self._codes.get(key)
        if known is None:
            reference = weakref.ref(code, lambda _: self._codes.pop(key, None))
            known = self._codes[key] = _Code(reference, _is_user_file(code.co_filename))
        return known


def _is_user_file(name: str) -> bool:
    return not name.startswith(("<", *_NOT_USER, HOME)) and name != _entry_file()


def _entry_file() -> object:
    """Return the script that has started the program in place of the user's, if there is one."""
    return vars(sys.modules.get("__traincheck_entry__", sys)).get("__file__")
