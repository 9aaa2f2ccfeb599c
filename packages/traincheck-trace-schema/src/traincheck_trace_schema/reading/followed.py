"""One process of a run that is followed while it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.reading.findings import Findings
from traincheck_trace_schema.reading.growing import GrowingFile
from traincheck_trace_schema.reading.shard import Shard, ShardReader, StreamItem
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window

if TYPE_CHECKING:
    from traincheck_trace_schema.records import Header


@attrs.define(eq=False)
class FollowedProcess:
    """The records of a process as they come, read no more than a piece of its file ahead.

    Where its file has no more, it is left alone until `look`.
    """

    index: int
    shard: Shard
    findings: Findings
    clock: Callable[[], float]
    file: GrowingFile = attrs.field(init=False)
    heard: float = attrs.field(init=False)  # when something of it was last read
    words: int = attrs.field(init=False, default=0)  # how often something of it was read
    reach: Window = attrs.field(init=False, default=BEFORE_FIRST_STEP)  # of the last record read
    is_at_end: bool = attrs.field(init=False, default=False)  # of what is there for now
    _is_closing: bool = attrs.field(init=False, default=False)
    _next: StreamItem | None = attrs.field(init=False, default=None)
    _reader: ShardReader = attrs.field(init=False)
    _items: Iterator[StreamItem | None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.heard = self.clock()
        self.file = GrowingFile(self.shard.path, self.clock)
        self._reader = ShardReader(self.file, self.index, self.findings)
        self._items = self._read()

    @property
    def header(self) -> Header:
        """The last header; a process may learn its rank after it wrote the first."""
        return self.findings.header or self.shard.header

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        is_closed = self.findings.has_footer or bool(self.findings.given_up)
        return is_closed and self._next is None

    def look(self) -> None:
        """See whether there is more, at most for the price of one `stat`."""
        if not self.has_ended and self.file.has_news():
            self.is_at_end = False

    def finish(self) -> None:
        """Have all read that is there, as the end of what the process wrote."""
        self._is_closing, self.is_at_end = True, False

    def peek(self) -> StreamItem | None:
        """Return the next record; None if it is not there yet."""
        if self._next is None and not self.is_at_end:
            self._next = next(self._items, None)
            if self._next is None:
                self.is_at_end = True
            else:
                self.reach = self._next.window
        return self._next

    def take(self, last: Window) -> Iterator[StreamItem]:
        """Yield what is there of the windows up to this one."""
        taken: Window | None = None
        while (item := self.peek()) is not None:
            if item.window is not taken:
                if item.window > last:
                    return
                taken = item.window
            self._next = None
            yield item

    def notes(self) -> tuple[str, ...]:
        """Say what was left out, and what became of the file."""
        return (*self.file.notes, *self.findings.told())

    def _read(self) -> Iterator[StreamItem | None]:
        """Yield the records; None where no more is there for now."""
        file, reader = self.file, self._reader
        while True:
            items = reader.read()
            if items is not None:
                self.heard = self.clock()
                self.words += 1
                for item in items:
                    seq = item.record.get("seq")
                    if type(seq) is int and seq > file.top_seq:
                        file.top_seq = seq
                    yield item
            elif self._is_closing or file.problem:
                if not file.trouble:
                    yield from reader.rest()
                elif not self.findings.has_footer:
                    self.findings.give_up(file.trouble)
                return
            else:
                yield None
