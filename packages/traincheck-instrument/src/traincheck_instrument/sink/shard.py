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
_NOWHERE = {"thread": 0, "seq": 0, "step": -1}
_PLACE = (*_NOWHERE, "eval_pass", "eval_step", "micro_step")


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
        self._is_closing = False  # nothing is taken any more
        self._is_closed = False
        self._lost = 0  # records that could not be written, and are not told yet
        self._has_told = False

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
        if self._is_closing:
            return
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
        if self._writer is None or self._is_closed:
            return
        self._is_closing = self._is_closed = True
        self._wake.set()
        self._writer.join()
        if footer is not None and not self._lost:
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
        try:
            while not self._is_closing:
                self._wake.wait(_FLUSH_SECONDS)
                self._wake.clear()
                self._write_waiting()
            self._write_waiting()
        except Exception as error:  # noqa: BLE001  a fault of ours ends the trace, not the training
            self._give_up(f"a fault of the writer: {type(error).__name__}: {error}")

    def _write_waiting(self) -> None:
        while self._waiting:
            count = min(len(self._waiting), _WRITE_AT)
            self._write([self._waiting.popleft() for _ in range(count)])

    def _write(self, records: list[Record]) -> None:
        """Append whole lines. A disk that refuses never stops training: it is told once."""
        if self._lost:
            records = [_gap("disk", self._lost, records[0]), *records]
        lines = "".join(map(_line, records)).encode()
        try:
            # Without a buffer: one that a full disk refused would be written again at the close.
            with self.path.open("ab", buffering=0) as file:
                size = file.tell()
                try:
                    rest = memoryview(lines)
                    while rest:
                        rest = rest[file.write(rest) :]
                except OSError:
                    file.truncate(size)  # the next line begins where a line begins
                    raise
        except OSError as error:
            self._lost += len(records)
            self._tell(error.strerror or str(error))
            return
        self._lost = 0
        self.counts.update(str(record["kind"]) for record in records)

    def _give_up(self, reason: str) -> None:
        self._lost += len(self._waiting)
        self._is_closing = True
        self._waiting.clear()
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        if not self._has_told and sys.stderr is not None:
            self._has_told = True
            sys.stderr.write(
                f"traincheck: {self.path} can't be written, records are lost: {reason}\n"
            )


def _gap(reason: str, count: int, near: Record) -> Record:
    """Make the record that says that others are missing, beside one that is there."""
    place = {key: near[key] for key in _PLACE if key in near}
    return {"kind": "gap", **_NOWHERE, **place, "reason": reason, "count": count}


def _line(record: Record) -> str:
    try:
        return f"{dumps(record)}\n"
    except (TypeError, ValueError, OverflowError) as error:
        detail = f"{record['kind']} could not be written: {error}"
        return f"{dumps({**_gap('encoding', 1, record), 'detail': detail})}\n"
