"""Makes records: numbers each, and says where the run stands."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

from traincheck_instrument.encode.scalars import MAX_NAME, start_of_text
from traincheck_instrument.recorder.source_lines import NOT_USER, SourceLines

if TYPE_CHECKING:
    from types import FrameType

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.recorder.open_calls import ThreadState
    from traincheck_instrument.recorder.source_lines import Line
    from traincheck_instrument.sink.shard import Shard
    from traincheck_instrument.steps.step_clock import StepClock

_MAX_LINES = 64  # of one call stack


class Journal:
    """The records of this process, in the order in which they are written, whatever the thread."""

    def __init__(self, shard: Shard, clock: StepClock, thread: ThreadState) -> None:
        self.flush = shard.flush
        self.lines = SourceLines()
        self._clock = clock
        self._thread = thread
        self._shard = shard
        self._append = shard.append
        self._faults = 0
        self._told_gaps = 0
        self._told_functions: set[str] = set()
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

    def write(self, record: dict[str, Any]) -> None:
        """Number a record, say where the run stands now, and hand it over; it must not change."""
        with self._order:
            record["seq"] = self._next_seq()
            record.update(self._clock.place.fields)  # not earlier: another thread may begin a step
            self._append(record)

    def write_text(self, kind: str, fields: str, *, since: int | None = None) -> int:
        """Write a record whose own fields are JSON text, without the braces around them.

        It takes a third of the time, here and in the writer, and leaves nothing to the collector of
        garbage. Not for facts, which are told again where they were lost, nor for gaps.

        Args:
            kind: What it is.
            fields: Its own fields.
            since: Of a change: the number of the last look at what changed.

        Returns:
            Its number.
        """
        thread = self._thread.ordinal
        with self._order:
            seq = self._next_seq()
            between = "" if since is None else f',"between":[{since},{seq}]'
            self._append(
                f'{{"kind":"{kind}","thread":{thread},"seq":{seq},'
                f"{self._clock.place.text},{fields}{between}}}"
            )
        return seq

    def gap(self, reason: str, detail: str = "") -> None:
        """Say that records are missing here."""
        record = self.begin("gap")
        record["reason"] = reason
        if detail:
            record["detail"] = detail[:500].encode("utf-8", "replace").decode()
        self._faults += reason == "fault"
        self.write(record)

    def lost_records(self) -> bool:
        """Whether records were lost since this was last asked; a gap says so by now."""
        before, self._told_gaps = self._told_gaps, self._shard.gaps + self._faults
        return self._told_gaps != before

    def tell_function(self, spec: FunctionSpec) -> None:
        """Tell what there is to say of a function, once."""
        if spec.name in self._told_functions:
            return
        with self._order:  # no other thread refers to what is not told yet
            if spec.name not in self._told_functions:
                record = self.begin("function")
                record["name"] = spec.name
                record["bases"] = spec.bases
                record["aliases"] = spec.aliases
                record["parameters"] = spec.parameters
                record["defaults"] = spec.defaults
                self.write(record)
                self._told_functions.add(spec.name)

    def source(self, frame: FrameType, line: int) -> int:
        """Return the number of a line of user code, which is told once."""
        code = frame.f_code
        place = start_of_text(code.co_filename, MAX_NAME), line, start_of_text(code.co_name)
        known = self.lines.number(place)
        if known is not None:
            return known
        with self._order:  # as above
            known = self.lines.number(place)
            return self._tell_source(place) if known is None else known

    def source_of(self, frame: FrameType) -> int:
        """Return the number of the line at which a frame stands, or `NOT_USER`."""
        known = self.lines.of(frame)
        return self._meet(frame) if known is None else known

    def nearest_source(self, frame: FrameType | None) -> int:
        """Return the number of the line of user code nearest to a frame, or `NOT_USER`."""
        number = NOT_USER
        while frame is not None and number == NOT_USER:
            number = self.source_of(frame)
            frame = frame.f_back
        return number

    def sources_around(self, frame: FrameType | None) -> list[int]:
        """Return the numbers of the lines of user code around a frame, nearest first."""
        numbers: list[int] = []
        while frame is not None and len(numbers) < _MAX_LINES:
            if (number := self.source_of(frame)) != NOT_USER:
                numbers.append(number)
            frame = frame.f_back
        return numbers

    def _meet(self, frame: FrameType) -> int:
        is_user = self.lines.is_user(frame)
        number = self.source(frame, frame.f_lineno) if is_user else NOT_USER
        self.lines.place(frame, number)
        return number

    def _tell_source(self, place: Line) -> int:
        number = self.lines.next_number
        record = self.begin("source")
        record["id"] = number
        record["file"], record["line"], record["function"] = place
        self.write(record)
        self.lines.add(place)
        return number

    def after_fork(self) -> None:
        """Tell functions and lines anew; called in a child, which has a shard of its own."""
        self._order = threading.RLock()  # another thread may have held it
        self._told_functions.clear()
        self.lines = SourceLines()
