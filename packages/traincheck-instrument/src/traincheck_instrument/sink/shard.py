"""Takes the records of one process and writes them to its shard, off the hot path.

Records are handed over at the call, and encoded and written by a thread. Memory is bounded: where
too many records wait, the producer waits for the writer rather than losing any. What is on disk at
any moment is a prefix of the trace, whole but for its last line.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from traincheck_instrument.sink.lines import Record

_WRITE_AT = 256  # records; about 100 kB, half a millisecond to encode
_COMPRESS_AT = 1024  # records; fewer compress less, more hardly better
# Each write lets other threads run, which then keep the interpreter for some milliseconds.
_LARGEST_BATCH = 1024
_WAIT_AT = 16_384  # records; about 20 MB as dictionaries
_FLUSH_SECONDS = 0.4
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
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._header = header
        self._rank = rank
        self._options = options
        self._on_full = on_full
        self._write_at = _COMPRESS_AT if options.compresses else _WRITE_AT
        self._begin()

    def _begin(self) -> None:
        self._waiting: deque[Record] = deque()
        self._wake = threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._writer = self._new_writer()
        self._is_closing = False  # nothing is taken any more
        self._is_closed = False
        self._has_failed = False

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
    def gaps(self) -> int:
        """How often the shard says by now that records which it was given are missing."""
        return self._writer.gaps

    def open(self) -> None:
        """Begin the file with its header; the first record does so too."""
        with self._start_lock:
            if self._thread is None:
                self._waiting.appendleft(self._header())
                self._thread = threading.Thread(target=self._run, name="traincheck", daemon=True)
                self._thread.start()

    def append(self, record: Record) -> None:
        """Take a record, which must not change any more."""
        if self._is_closing:
            return
        self._waiting.append(record)
        if self._thread is None:
            self.open()
        waiting = len(self._waiting)
        if waiting >= self._write_at:
            if not self._wake.is_set():
                self._wake.set()
            if waiting >= _WAIT_AT:
                self._wait_for_room()

    def flush(self) -> None:
        """Have what was taken so far written soon; small batches would not compress."""
        if not self._options.compresses:
            self._wake.set()

    def close(self, footer: Callable[[Mapping[str, int]], Record] | None) -> None:
        """Write what was taken, then, at a clean end, the `footer` of the counts of records."""
        if self._thread is None or self._is_closed:
            return
        self._is_closing = self._is_closed = True
        self._wake.set()
        self._thread.join()
        if footer is not None and not self._has_failed:
            self._writer.end(footer)

    def after_fork(self) -> None:
        """Leave the parent its records and its file; called in the child."""
        self._begin()

    def _wait_for_room(self) -> None:
        while len(self._waiting) >= _WAIT_AT // 2 and self._thread is not None:
            if not self._thread.is_alive():
                return
            self._wake.set()
            time.sleep(_PAUSE_SECONDS)

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._wake.wait(_FLUSH_SECONDS)
                self._wake.clear()
                self._write_waiting()
            self._write_waiting()
        except Exception as error:  # noqa: BLE001  a fault of ours ends the trace, not the training
            self._has_failed = True
            self._stop()
            self._writer.tell_loss(f"a fault of the writer: {type(error).__name__}: {error}")

    def _write_waiting(self) -> None:
        if self._writer.has_loss and not self._waiting:
            self._writer.write(())
        while self._waiting and not self._writer.is_full:
            count = min(len(self._waiting), _LARGEST_BATCH)
            self._writer.write([self._waiting.popleft() for _ in range(count)])
        if self._writer.is_full:
            self._stop()
            self._on_full()

    def _stop(self) -> None:
        """Take nothing any more."""
        self._is_closing = True
        self._waiting.clear()
