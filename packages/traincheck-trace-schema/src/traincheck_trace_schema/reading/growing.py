"""Reads a file that another process writes at this moment: each of its lines once."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import attrs

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.lines import LineReader

_REOPEN_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0  # before it is told that a file can't be read


@attrs.frozen
class _Line:
    """A line by which a copy of the file is known."""

    number: int
    checksum: int


@attrs.define(eq=False)
class GrowingFile(LineReader):
    """Gives the lines of a file that grows, may vanish for a while, or be replaced.

    If a copy took its place, of which less or more may be there, reading goes on after the last
    line that was given or, if that one is gone, after the record with the seq `top_seq`. If it was
    another trace, that is a `problem`. The file is open only within `read`.
    """

    clock: Callable[[], float]
    top_seq: int = attrs.field(init=False, default=-1)  # of the records given; the caller keeps it
    changed: float | None = attrs.field(init=False, default=None)  # when it was seen to change
    notes: list[str] = attrs.field(init=False, factory=list)
    _number: int = attrs.field(init=False, default=0)  # of the last line of this copy that was read
    _first: int | None = attrs.field(init=False, default=None)  # checksum of the first line
    _last: _Line | None = attrs.field(init=False, default=None)  # that was given
    _is_behind: bool = attrs.field(init=False, default=False)  # in a copy, before what is new
    _state: tuple[int, int, int] | None = attrs.field(init=False, default=None)
    _reopen_at: float = attrs.field(init=False, default=0.0)
    _unreadable: str = attrs.field(init=False, default="")  # why, at the moment
    _unreadable_since: float | None = attrs.field(init=False, default=None)

    @property
    def seen_size(self) -> int:
        """How many bytes there were when it was looked at last."""
        return 0 if self._state is None else self._state[1]

    @property
    def trouble(self) -> str:
        """Say why what is there now can't be read, if that may still change; empty if it can."""
        if self._is_behind:
            return f"{self.path}: is shorter than what was read of it"
        return self._unreadable

    def has_news(self) -> bool:
        """Whether there may be more than was read, for the price of one `stat`."""
        if self.problem:
            return False
        now = self.clock()
        try:
            found = self.path.stat()
        except OSError as error:
            self._on_unreadable(error, now)
            return False
        state = found.st_ino, found.st_size, found.st_mtime_ns
        if state != self._state:
            self._state, self.changed = state, now
        elif now < self._reopen_at:
            return False
        # A network file system may go on to give an old size until the file is opened again.
        self._reopen_at = now + _REOPEN_SECONDS
        return True

    def read(self) -> list[bytes | None] | None:
        """Return the next whole lines, maybe none; None if there are no more for now.

        Raises:
            TraceError: it is no regular file.
        """
        try:
            lines = super().read()
        except TraceError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            self._on_unreadable(error.__cause__, self.clock())
            return None
        finally:
            self.close()
        self._unreadable_since, self._unreadable = None, ""
        if self.was_replaced:
            super().__init__(self.path)  # from its beginning
            self._number, self._is_behind = 0, self._last is not None
            return []
        return self._new_of(lines) if lines else lines

    def _new_of(self, lines: list[bytes | None]) -> list[bytes | None] | None:
        """Return which of the lines that follow were not given yet."""
        if self._number == 0:
            checksum = _checksum(lines[0])
            if self._first not in {None, checksum}:
                self.problem, self._is_behind = "was replaced by another trace", False
                return None
            self._first = checksum
        if self._is_behind:
            lines = self._after_last(lines)
        self._number += len(lines)
        if not self._is_behind and lines:
            self._last = _Line(self._number, _checksum(lines[-1]))
        return lines

    def _after_last(self, lines: list[bytes | None]) -> list[bytes | None]:
        """Go on in a copy; return what comes after the last line that was given."""
        for index, line in enumerate(lines):
            self._number += 1
            if _Line(self._number, _checksum(line)) == self._last:
                self._is_behind = False
                return lines[index + 1 :]
            if self._is_new(line):
                self._is_behind = False
                self.notes.append(
                    f"{self.path}:{self._number}: the file was cut back before this line; "
                    "what stood there was read, and is gone"
                )
                self._number -= 1
                return lines[index:]
        return []

    def _is_new(self, line: bytes | None) -> bool:
        """Whether a line is a record that was not given."""
        try:
            record = loads(line or b"")
        except ValueError:
            return False
        if not isinstance(record, dict):
            return False
        seq = record.get("seq")
        return record.get("kind") == "footer" or (type(seq) is int and seq > self.top_seq)

    def _on_unreadable(self, error: OSError, now: float) -> None:
        self._unreadable = f"{self.path}: cannot be read: {error.strerror or error}"
        if self._unreadable_since is None:
            self._unreadable_since = now
        elif now - self._unreadable_since > _PATIENCE_SECONDS:
            note = f"{self._unreadable}; it is tried again and again"
            if note not in self.notes:
                self.notes.append(note)


def _checksum(line: bytes | None) -> int:
    return zlib.crc32(line or b"")
