"""Writes the records of one process to its shard, off the hot path.

Records are handed over at the call, and encoded and written by a thread. Memory is bounded: where
too many records wait, the producer waits for the writer rather than losing any. What is on disk at
any moment is a prefix of the trace, whole but for its last line.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from pathlib import Path

Record: TypeAlias = Mapping[str, Any]

_WRITE_AT = 256  # records; about 100 kB, a third of a millisecond to encode
_WAIT_AT = 16_384  # records; about 20 MB as dictionaries
_FLUSH_SECONDS = 0.4
_PAUSE_SECONDS = 0.001


class Shard:
    """The trace file of this process; begun anew, under another name, after fork."""

    def __init__(self, folder: Path, header: Callable[[], Record], rank: Callable[[], int]) -> None:
        self._folder = folder
        self._header = header
        self._rank = rank
        self._begin()

    def _begin(self) -> None:
        self.counts: Counter[str] = Counter()
        self._pid = os.getpid()
        self._waiting: deque[Record] = deque()
        self._wake = threading.Event()
        self._start_lock = threading.Lock()
        self._writer: threading.Thread | None = None
        self._is_closing = False
        self._has_failed = False

    @property
    def path(self) -> Path:
        """The file that this process writes."""
        return self._folder / f"trace_r{self._rank()}_p{self._pid}.json"

    def open(self) -> None:
        """Begin the file with its header; the first record does so too."""
        with self._start_lock:
            if self._writer is None:
                self._waiting.appendleft(self._header())
                self._writer = threading.Thread(target=self._run, name="traincheck", daemon=True)
                self._writer.start()

    def append(self, record: Record) -> None:
        """Take a record, which must not change any more."""
        self._waiting.append(record)
        if self._writer is None:
            self.open()
        waiting = len(self._waiting)
        if waiting >= _WRITE_AT:
            self._wake.set()
            if waiting >= _WAIT_AT:
                self._wait_for_room()

    def flush(self) -> None:
        """Have what was taken so far written, without waiting for it."""
        self._wake.set()

    def close(self, footer: Callable[[Mapping[str, int]], Record] | None) -> None:
        """Write what was taken, then, at a clean end, the `footer` of the counts of records."""
        if self._writer is None or self._is_closing:
            return
        self._is_closing = True
        self._wake.set()
        self._writer.join()
        if footer is not None and not self._has_failed:
            self._write([footer(self.counts)])

    def after_fork(self) -> None:
        """Leave the parent its records and its file; called in the child."""
        self._begin()

    def _wait_for_room(self) -> None:
        while len(self._waiting) >= _WAIT_AT // 2 and self._writer is not None:
            if not self._writer.is_alive():
                return
            self._wake.set()
            time.sleep(_PAUSE_SECONDS)

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(_FLUSH_SECONDS)
            self._wake.clear()
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        while self._waiting:
            count = min(len(self._waiting), _WRITE_AT)
            self._write([self._waiting.popleft() for _ in range(count)])

    def _write(self, records: list[Record]) -> None:
        """Append whole lines. A disk that refuses never stops training: it is told once."""
        lines = "".join(map(_line, records)).encode()
        try:
            with self.path.open("ab") as file:
                file.write(lines)
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                sys.stderr.write(f"traincheck: {self.path} can't be written: {error.strerror}\n")
            return
        self.counts.update(str(record["kind"]) for record in records)


def _line(record: Record) -> str:
    try:
        return f"{dumps(record)}\n"
    except (TypeError, ValueError, OverflowError) as error:
        gap = {key: record[key] for key in ("thread", "seq", "step")}
        detail = f"{record['kind']} could not be written: {error}"
        return (
            f"{dumps({'kind': 'gap', **gap, 'reason': 'encoding', 'count': 1, 'detail': detail})}\n"
        )
