"""Makes records: numbers each, and says where the run stands."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

from traincheck_instrument.encode.scalars import MAX_NAME, start_of_text
from traincheck_instrument.source_lines import SourceLines

if TYPE_CHECKING:
    from types import FrameType

    from traincheck_instrument.open_calls import ThreadState
    from traincheck_instrument.sink.shard import Shard
    from traincheck_instrument.step_clock import StepClock


class Journal:
    """The records of this process, in the order in which they are written, whatever the thread."""

    def __init__(self, shard: Shard, clock: StepClock, thread: ThreadState) -> None:
        self.flush = shard.flush
        self.lines = SourceLines()
        self._clock = clock
        self._thread = thread
        self._shard = shard
        self._append = shard.append
        self._told_gaps = 0
        # Reentrant: what a signal handler of the program does may have a fault to tell.
        self._order = threading.RLock()
        self._next_seq = itertools.count().__next__

    def begin(self, kind: str) -> dict[str, Any]:
        """Return a record with the fields that all have; `write` it when it is full."""
        return {
            "kind": kind,
            "thread": self._thread.ordinal,
            "seq": -1,
            "step": -1,
        }

    def write(self, record: dict[str, Any], *, since: int | None = None) -> int:
        """Number a record, say where the run stands now, hand it over, and return its number.

        Args:
            record: The record, which must not change any more.
            since: Of a change: the number of the last look at what changed.
        """
        with self._order:
            seq: int = self._next_seq()
            record["seq"] = seq
            record.update(self._clock.fields)  # not earlier: another thread may begin a step
            if since is not None:
                record["between"] = (since, seq)
            self._append(record)
        return seq

    def gap(self, reason: str, detail: str = "") -> None:
        """Say that records are missing here."""
        record = self.begin("gap")
        record["reason"] = reason
        if detail:
            record["detail"] = detail[:500].encode("utf-8", "replace").decode()
        self.write(record)

    def lost_records(self) -> bool:
        """Whether records were lost since this was last asked; a gap says so by now."""
        before, self._told_gaps = self._told_gaps, self._shard.gaps
        return self._told_gaps != before

    def source(self, frame: FrameType, line: int) -> int:
        """Return the number of a line of user code, which is told once."""
        number, is_new = self.lines.number(frame, line)
        if is_new:
            record = self.begin("source")
            record["id"] = number
            record["file"] = start_of_text(frame.f_code.co_filename, MAX_NAME)
            record["line"] = line
            record["function"] = start_of_text(frame.f_code.co_name)
            self.write(record)
        return number

    def after_fork(self) -> None:
        """Tell lines anew; called in a child, which has a shard of its own."""
        self._order = threading.RLock()  # another thread may have held it
        self.lines = SourceLines()
