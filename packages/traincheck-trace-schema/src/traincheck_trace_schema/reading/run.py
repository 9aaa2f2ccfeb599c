"""Read a run: all shards of its trace as one stream of records, in the order of windows."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.attendance import absent_ranks, missing_ranks
from traincheck_trace_schema.reading.opening import (
    Opened,
    Paths,
    Unread,
    as_paths,
    listed,
    open_shards,
)
from traincheck_trace_schema.reading.shard import Findings, Shard, StreamItem
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_trace_schema.records import Header

__all__ = ["Run", "Shard", "Stream", "StreamItem", "WindowEnd", "open_run", "open_runs"]


@attrs.frozen
class WindowEnd:
    """Every record of this window, of all processes, came before.

    `without` are the ranks of the world that took no part in it, or not to its end: they left no
    trace, had ended without a footer, or were given up.
    """

    window: Window
    without: tuple[int, ...] = ()


Stream: TypeAlias = Iterator[StreamItem | WindowEnd]


@attrs.define(kw_only=True)
class Run:
    """The trace of a run: shards that share a run id, by rank, a rank's main process first."""

    run_id: str
    shards: tuple[Shard, ...]
    is_strict: bool = False
    unread: tuple[Unread, ...] = ()  # files beside the shards that could not be read
    _findings: tuple[Findings, ...] = attrs.field(init=False, default=())

    def stream(self) -> Stream:
        """Yield the headers, then all records of each window, then its end.

        Within a window the shards follow one another, each in its own order. Memory does not
        depend on the length of the trace. May be called again.

        Raises:
            TraceError: the run is read strictly, and a line is no record.
        """
        self._findings = tuple(
            Findings(path=shard.path, header=shard.header, is_strict=self.is_strict)
            for shard in self.shards
        )
        headers = (
            StreamItem(process, shard.raw_header, 1, BEFORE_FIRST_STEP)
            for process, shard in enumerate(self.shards)
        )
        cursors = map(_Cursor, range(len(self.shards)), self.shards, self._findings)
        return chain(headers, _merge(tuple(cursors)))

    def incomplete_because(self) -> tuple[str, ...]:
        """Say why the trace is not all that happened; empty if it is. Ask after the stream."""
        headers = [findings.header for findings in self._findings if findings.header]
        return (
            *(each.loss for each in self.unread),
            *missing_ranks(headers),
            *(loss for findings in self._findings for loss in findings.losses()),
        )

    def notes(self) -> tuple[str, ...]:
        """Say what was left out while reading. Ask after the stream."""
        left_out = (f"{each.problem}; it was left out" for each in self.unread if each.problem)
        told = (note for findings in self._findings for note in findings.told())
        return tuple(dict.fromkeys((*left_out, *told)))


def open_run(paths: Paths, *, strict: bool = False) -> Run:
    """Open the trace of one run: folders of shards, or shards.

    Raises:
        TraceError: there is no trace, it cannot be read, or it is of several runs.
    """
    runs = open_runs(paths, strict=strict)
    if len(runs) > 1:
        ids = ", ".join(repr(run.run_id) for run in runs)
        raise TraceError(f"{listed(as_paths(paths))}: must hold the trace of one run, got {ids}")
    return runs[0]


def open_runs(paths: Paths, *, strict: bool = False) -> list[Run]:
    """Open the traces of runs, one `Run` a run id, in the order of the paths.

    A file in a folder that cannot be read is left out, and the run is not complete.

    Args:
        paths: Folders of shards, or shards; a single one may stand by itself.
        strict: Refuse the first line, or file, that is not as the format says, here or in the
            stream. A last line that was cut is no such line.

    Raises:
        TraceError: there is no trace, one is of a version that is not known, or one that is named
            cannot be read.
    """
    opened = open_shards(as_paths(paths), is_strict=strict)
    members: dict[str, list[Shard]] = {}
    for shard in opened.shards:
        members.setdefault(shard.header.run_id, []).append(shard)
    return [
        Run(
            run_id=run_id,
            shards=tuple(sorted(shards, key=lambda shard: shard.order)),
            is_strict=strict,
            unread=_beside(shards, opened),
        )
        for run_id, shards in members.items()
    ]


@attrs.define
class _Cursor:
    """A place in a shard, whose file is read only when the stream gets there.

    A run may have thousands of shards (each pass over a data set starts its workers anew), of
    which few are read at a time.
    """

    process: int
    shard: Shard
    findings: Findings
    window: Window | None = attrs.field(init=False)  # None: at the end
    has_begun: bool = attrs.field(init=False, default=False)  # a record was taken
    _items: Iterator[StreamItem] | None = attrs.field(init=False, default=None)
    _next: StreamItem | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.window = self.shard.start

    @property
    def header(self) -> Header:
        """The last header that was read."""
        return self.findings.header or self.shard.header

    @property
    def is_gone(self) -> bool:
        """Whether the process died: nothing more comes from it, and it had not ended."""
        return self.window is None and not self.findings.has_footer

    def take(self) -> Iterator[StreamItem]:
        """Yield the records of the window that the cursor stands in, and go on to the next."""
        if self._items is None:
            self._items = self.shard.read(self.process, self.findings)
            self._next = next(self._items, None)
        window, item = self.window, self._next
        if item is not None and item.window == window:
            self.has_begun = True
            yield item
            for item in self._items:
                if item.window is not window and item.window != window:
                    break
                yield item
            else:
                item = None
        self._next = item
        self.window = item.window if item else None


def _merge(cursors: Sequence[_Cursor]) -> Stream:
    heap = [(cursor.window, cursor.process) for cursor in cursors if cursor.window]
    heapq.heapify(heap)
    known: tuple[list[Header], list[bool]] | None = None
    without: tuple[int, ...] = ()
    has_begun = False
    while heap:
        window, process = heap[0]
        cursor = cursors[process]
        yield from cursor.take()
        has_begun = has_begun or cursor.has_begun
        if cursor.window:
            heapq.heapreplace(heap, (cursor.window, process))
        else:
            heapq.heappop(heap)
        if has_begun and (not heap or heap[0][0] != window):
            facts = [each.header for each in cursors], [each.is_gone for each in cursors]
            if facts != known:
                known = facts
                without = absent_ranks(zip(*facts, strict=True))
            yield WindowEnd(window, without)


def _beside(shards: Sequence[Shard], opened: Opened) -> tuple[Unread, ...]:
    """Return what may be of the same run: it lies in no folder that only holds others."""
    own = {shard.path.parent for shard in shards}
    others = {shard.path.parent for shard in opened.shards} - own
    return tuple(each for each in opened.unread if each.path.parent not in others)
