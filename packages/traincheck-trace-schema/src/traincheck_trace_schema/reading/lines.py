"""Reads the lines of a file that may be compressed, hostile, very long, or still growing."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path
from typing import Any

import attrs

from traincheck_trace_schema.errors import TraceError

MAX_LINE = 16 * 2**20  # bytes; a longer line is no record
_MAX_SKIPPED = 2**30  # bytes of one line, after which the rest of the file is given up
_CHUNK = 2**18
_TAIL = 256  # bytes before the place where reading stopped, by which the file is known again
_GZIP = b"\x1f\x8b"
_GZIP_BITS = 16 + zlib.MAX_WBITS


@attrs.define
class LineReader:
    """Gives the lines of a file piece by piece, plain or gzip, in bounded memory.

    `read` returns the whole lines of the next piece, without their ends; one of more than
    `MAX_LINE` bytes is `None`. It returns None where there is nothing more: at the end, or, of a
    file that grows, for now. The file is open only in between.
    """

    path: Path
    problem: str = attrs.field(init=False, default="")  # why the rest of the file can't be read
    was_replaced: bool = attrs.field(init=False, default=False)  # what was read is gone
    offset: int = attrs.field(init=False, default=0)  # bytes of the file that were taken
    _fd: int | None = attrs.field(init=False, default=None)
    _tail: bytes = attrs.field(init=False, default=b"")
    _inflate: _Inflate | None = attrs.field(init=False, default=None)
    _rest: bytes = attrs.field(init=False, default=b"")  # of a line that is not whole
    _skipped: int = attrs.field(init=False, default=0)  # bytes of a line that is too long

    @property
    def is_amid(self) -> bool:
        """Whether what was read so far ends within a line, or within compressed data."""
        is_within = self._inflate is not None and self._inflate.is_amid
        return bool(self._rest or self._skipped or is_within)

    def read(self) -> list[bytes | None] | None:
        """Return the whole lines of the next piece, maybe none; None at the end.

        Raises:
            TraceError: the file cannot be read, or is no regular file.
        """
        if self.problem or self.was_replaced:
            return None
        try:
            data = self._next()
        except OSError as error:
            self.close()
            raise TraceError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        return None if data is None else self._split(data)

    def close(self) -> None:
        """Close the file; the next `read` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _next(self) -> bytes | None:
        """Return the next piece of the text; None if there is nothing more."""
        if self._inflate is not None and self._inflate.has_more:
            return self._inflated(self._inflate, b"")
        fd = self._opened()
        data = b"" if fd is None else os.read(fd, _CHUNK)
        if not data:
            self.close()
            return None
        if self.offset == 0 and data.startswith(_GZIP):
            self._inflate = _Inflate()
        self.offset += len(data)
        self._tail = (self._tail + data)[-_TAIL:]
        return data if self._inflate is None else self._inflated(self._inflate, data)

    def _inflated(self, inflate: _Inflate, data: bytes) -> bytes | None:
        try:
            return inflate(data)
        except zlib.error as error:
            self._give_up(f"is no gzip from here on ({error})")
            return None

    def _opened(self) -> int | None:
        """Return the file, open where reading stopped; None if it is no more the same."""
        if self._fd is not None:
            return self._fd
        # A FIFO without a writer would block, both here and in each read.
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            self.close()
            raise TraceError(f"{self.path}: cannot be read: it is no regular file")
        os.lseek(self._fd, self.offset - len(self._tail), os.SEEK_SET)
        if self._tail and os.read(self._fd, len(self._tail)) != self._tail:
            self.was_replaced = True
            self.close()
        return self._fd

    def _split(self, data: bytes) -> list[bytes | None]:
        lines: list[bytes | None]
        first, *others = data.split(b"\n")
        if self._skipped:
            self._skipped += len(first)
            lines = [None, *others]
        else:
            lines = [self._rest + first, *others]
        # Only the first and the last can be longer than a piece.
        first_line, last = lines[0], lines.pop()
        if first_line is not None and len(first_line) > MAX_LINE and lines:
            lines[0] = None
        if last is None:
            if self._skipped > _MAX_SKIPPED:
                self._give_up(f"has a line of more than {_MAX_SKIPPED} bytes")
        elif len(last) > MAX_LINE:
            self._rest, self._skipped = b"", len(last)
        else:
            self._rest, self._skipped = last, 0
        return lines

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.close()


class _Inflate:
    """Decompresses gzip, which may have several members, a bounded piece at a time."""

    def __init__(self) -> None:
        self._stream: Any = None  # of the member, if within one
        self._waiting = b""

    @property
    def is_amid(self) -> bool:
        """Whether a member has begun and not ended."""
        return self._stream is not None

    @property
    def has_more(self) -> bool:
        """Whether there is more to be had without new data."""
        return bool(self._waiting)

    def __call__(self, data: bytes) -> bytes:
        """Return what the data gives, up to the size of a piece."""
        waiting = self._waiting + data
        if self._stream is None:
            waiting = waiting.lstrip(b"\0")  # padding between members
            if not waiting:
                self._waiting = b""
                return b""
            self._stream = zlib.decompressobj(_GZIP_BITS)
        text: bytes = self._stream.decompress(waiting, _CHUNK)
        self._waiting = self._stream.unconsumed_tail
        if self._stream.eof:
            self._waiting = self._stream.unused_data
            self._stream = None
        return text
