"""Tells on stderr how far a long inference is."""

from __future__ import annotations

import sys
import time

import attrs

_QUIET_SECONDS = 5.0  # before the first line where stderr is no terminal
_TERMINAL_SECONDS = 0.2  # between two of a terminal, where a line replaces the one before
_FILE_SECONDS = 30.0


@attrs.define
class Progress:
    """How far the work is; each part has a name and is told with its records or its tasks.

    Nothing is written before some seconds have passed, except on a terminal.
    """

    _is_terminal: bool = attrs.field(factory=sys.stderr.isatty)
    _what: str = ""
    _records: int = 0
    _next: float = 0.0
    _width: int = 0  # of the line that stands on the terminal

    def __attrs_post_init__(self) -> None:
        wait = _TERMINAL_SECONDS if self._is_terminal else _QUIET_SECONDS
        self._next = time.monotonic() + wait

    def begin(self, what: str) -> None:
        """Go on to another part of the work."""
        self._what, self._records = what, 0
        self._tell("")

    def read(self, records: int) -> None:
        """Tell that so many more records were read."""
        self._records += records
        self._tell(f": {self._records:,} records")

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0

    def _tell(self, far: str) -> None:
        now = time.monotonic()
        if not self._what or now < self._next:
            return
        line = f"traincheck-infer: {self._what}{far}"
        if self._is_terminal:
            sys.stderr.write(f"\r{line:<{self._width}}")
            self._width = len(line)
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
        self._next = now + (_TERMINAL_SECONDS if self._is_terminal else _FILE_SECONDS)
