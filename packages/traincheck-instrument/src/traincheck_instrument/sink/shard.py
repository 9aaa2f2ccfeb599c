"""Takes the records of one process and writes them to its shard, off the hot path.

Records are handed over at the call, and encoded and written by a thread. Memory is bounded: where
too many records wait, the producer waits for the writer rather than losing any. What is on disk at
any moment is a prefix of the trace, whole but for its last line.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.wake import Wake
from traincheck_instrument.sink.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from traincheck_instrument.sink.lines import Line, Record

_WRITE_AT = 256  # records; about 100 kB, half a millisecond to encode
_COMPRESS_AT = 1024  # records; fewer compress less, more hardly better
# Each write lets other threads run, which then keep the interpreter for some milliseconds.
_LARGEST_BATCH = 1024
_WAIT_AT = 16_384  # records; about 20 MB as dictionaries
_FLUSH_SECONDS = 0.4
# Short steps are written together: to wake the writer and to open the file takes as long as the
# records of a whole step do, and most of what a step costs that is left out.
_FLUSHES_APART_SECONDS = 0.05
_PAUSE_SECONDS = 0.001


@attrs.frozen(kw_only=True)
class ShardOptions:
    """How shards are written."""

    compresses: bool = False
    max_bytes: int | None = None  # of all traces in the folder


class Shard:
    """The trace file of this process; begun anew, under another name, after fork."""

    def __init__(
        self,
        folder: Path,
        header: Callable[[], Record],
        rank: Callable[[], int],
        options: ShardOptions = ShardOptions(),
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._header = header
        self._rank = rank
        self._options = options
        self._on_stop = on_stop
        self._write_at = _COMPRESS_AT if options.compresses else _WRITE_AT
        self._begin()

    def _begin(self) -> None:
        self._waiting: deque[Line] = deque()
        self._wake = Wake()
        self._opening = threading.Lock()  # who gets it opens the file; it is never given back
        self._thread: threading.Thread | None = None
        self._writer = self._new_writer()
        self.writer_ns = 0  # CPU time of the thread that writes
        self._flushed = 0.0  # when that was last asked for
        self._awaited: deque[threading.Event] = deque()  # by those who wait for the disk
        self._is_stopped = False  # nothing is taken any more
        self._is_closed = False

    def _new_writer(self) -> Writer:
        stem = f"trace_r{self._rank()}_p{os.getpid()}"
        options = self._options
        file = TraceFile(self._folder, stem, options.compresses)
        limit = None
        if options.max_bytes is not None:
            limit = SizeLimit(self._folder, options.max_bytes)
        return Writer(file, limit)

    @property
    def path(self) -> Path:
        """The file that this process writes."""
        return self._writer.file.path

    @property
    def size(self) -> int:
        """How many bytes were written to it."""
        return self._writer.file.size

    @property
    def is_open(self) -> bool:
        """Whether the file is begun, so that its header is told."""
        return self._thread is not None

    @property
    def gaps(self) -> int:
        """How often the shard says by now that records which it was given are missing."""
        return self._writer.gaps

    def open(self) -> None:
        """Begin the file with its header; the first record does so too.

        Raises:
            Exception: that is not possible; nothing is recorded, then or later.
        """
        if not self._opening.acquire(blocking=False):
            return
        try:
            self._waiting.appendleft(self._header())
            thread = threading.Thread(target=self._run, name="traincheck", daemon=True)
            thread.start()
        except BaseException:
            self._stop()
            raise
        self._thread = thread

    def append(self, record: Line) -> None:
        """Take a record, which must not change any more, or its text.

        A signal handler of the program may interrupt this, and call it.
        """
        if self._is_stopped:
            return
        self._waiting.append(record)
        if self._thread is None:
            self.open()
        waiting = len(self._waiting)
        if waiting >= self._write_at:
            self._wake.set()
            if waiting >= _WAIT_AT:
                self._wait_for_room()

    def flush(self) -> None:
        """Have what was taken so far written soon, unless that was just asked for.

        Small batches would not compress.
        """
        now = time.monotonic()
        if not self._options.compresses and now - self._flushed >= _FLUSHES_APART_SECONDS:
            self._flushed = now
            self._wake.set()

    def write_out(self, seconds: float) -> int | None:
        """Have all written that was taken so far; return the number of the last record.

        None: after so many seconds it is not, or something is lost, or nothing is taken any more.
        """
        if self._thread is None or self._is_stopped:
            return None
        is_written = threading.Event()
        self._awaited.append(is_written)
        self._wake.set()
        return self._writer.last_number() if is_written.wait(seconds) else None

    def close(self, footer: Callable[[Mapping[str, int]], Record] | None) -> None:
        """Write what was taken, then, at a clean end, the `footer` of the counts of records."""
        if self._thread is None or self._is_closed:
            return
        self._is_stopped = self._is_closed = True
        self._wake.set()
        self._thread.join()
        if footer is not None:
            self._writer.end(footer)

    def after_fork(self) -> None:
        """Leave the parent its records and its file; called in the child."""
        self._begin()

    def _wait_for_room(self) -> None:
        while len(self._waiting) >= _WAIT_AT // 2 and self._thread is not None:
            if not self._thread.is_alive():
                self._stop()
            self._wake.set()
            time.sleep(_PAUSE_SECONDS)

    def _run(self) -> None:
        try:
            while not (self._is_closed or self._is_over()):
                self._wake.wait(_FLUSH_SECONDS)
                awaited = [self._awaited.popleft() for _ in range(len(self._awaited))]
                self._write_waiting()
                for each in awaited:
                    each.set()
                self.writer_ns = time.thread_time_ns()
            self._write_waiting()
        except Exception as error:  # noqa: BLE001  a fault of ours ends the trace, not the training
            self._stop()
            with contextlib.suppress(Exception):  # it may be in the way of telling it, too
                self._writer.fail("a fault of the writer", error)

    def _is_over(self) -> bool:
        """Whether the trace has ended before the program, and says so."""
        return self._writer.has_ended and not self._writer.has_loss

    def _write_waiting(self) -> None:
        if self._writer.has_loss and not self._waiting:
            self._writer.write(())
        while self._waiting and not self._writer.has_ended:
            count = min(len(self._waiting), _LARGEST_BATCH)
            self._writer.write([self._waiting.popleft() for _ in range(count)])
        if self._writer.has_ended:
            self._stop()

    def _stop(self) -> None:
        """Take nothing any more, and say so to who makes the records."""
        if not self._is_stopped:
            self._is_stopped = True
            self._on_stop()
        self._waiting.clear()
