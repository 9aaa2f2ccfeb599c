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
_CHUNK = 2**16  # bytes; larger ones would come from fresh memory each time
_FED = 2**13  # compressed bytes that are decompressed at a time
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
    is_plain: bool = attrs.field(init=False, default=False)  # the last lines: ASCII, no backslash
    size: int = attrs.field(init=False, default=0)  # bytes of the text that they gave
    _fd: int | None = attrs.field(init=False, default=None)
    _tail: bytes = attrs.field(init=False, default=b"")
    _inflate: _Inflate | None = attrs.field(init=False, default=None)
    _parts: list[bytes] = attrs.field(init=False, factory=list)  # of a line that is not whole
    _length: int = attrs.field(init=False, default=0)  # of that line, so far
    _is_rest_plain: bool = attrs.field(init=False, default=True)

    @property
    def rest(self) -> bytes:
        """What there is so far of a line that has no end; of one that is too long, nothing."""
        return b"".join(self._parts)

    @property
    def is_skipping(self) -> bool:
        """Whether what was read so far ends within a line that is too long."""
        return self._length > MAX_LINE

    @property
    def is_amid(self) -> bool:
        """Whether what was read so far ends within a line, or within compressed data."""
        is_within = self._inflate is not None and self._inflate.is_amid
        return self._length > 0 or is_within

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
        if data is None:
            return None
        self.size += len(data)
        return self._split(data)

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
        if self.offset == 0 and _GZIP.startswith(data[: len(_GZIP)]):
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
        # Asked of all lines at once, this takes next to nothing.
        is_plain = data.isascii() and b"\\" not in data
        self.is_plain = is_plain and self._is_rest_plain
        start, *others = data.split(b"\n")
        self._extend(start)
        if not others:
            self._is_rest_plain = self.is_plain
            return []
        first = None if self.is_skipping else self.rest
        self._parts, self._length, self._is_rest_plain = [], 0, is_plain
        self._extend(others.pop())
        return [first, *others]

    def _extend(self, part: bytes) -> None:
        """Take the next part of a line that is not whole."""
        self._length += len(part)
        if self._length > _MAX_SKIPPED:
            self._give_up(f"has a line of more than {_MAX_SKIPPED} bytes")
        if self.is_skipping:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.close()


class _Inflate:
    """Decompresses gzip, which may have several members, a bounded piece at a time."""

    def __init__(self) -> None:
        self._stream: Any = None  # of the member, if within one
        self._waiting = b""
        self._at = 0  # where in it to go on
        self._is_full = False  # the last piece: zlib may hold back more

    @property
    def is_amid(self) -> bool:
        """Whether a member has begun and not ended."""
        return self._stream is not None

    @property
    def has_more(self) -> bool:
        """Whether there is more to be had without new data."""
        return self._at < len(self._waiting) or self._is_full

    def __call__(self, data: bytes) -> bytes:
        """Return the next piece of what the data gives, maybe nothing."""
        if data:
            self._waiting, self._at = self._waiting[self._at :] + data, 0
        # What zlib leaves over it copies: of all that waits, that would be at each small member.
        fed = self._waiting[self._at : self._at + _FED]
        if self._stream is None:
            padding = len(fed) - len(fed.lstrip(b"\0"))  # between members
            if padding:
                self._at += padding
                return b""
            self._stream = zlib.decompressobj(_GZIP_BITS)
        text: bytes = self._stream.decompress(fed, _CHUNK)
        # Behind the end of a member, zlib may have what it left over in both.
        left = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        self._at += len(fed) - len(left)
        self._is_full = len(text) == _CHUNK and not self._stream.eof
        if self._stream.eof:
            self._stream = None
        return text
