"""Follow a run while it writes: its shards as one stream of records, in the order of windows."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from traincheck_trace_schema.reading.arrivals import Arrivals
from traincheck_trace_schema.reading.attendance import missing_ranks
from traincheck_trace_schema.reading.followed import FollowedProcess
from traincheck_trace_schema.reading.opening import Paths, as_paths
from traincheck_trace_schema.reading.ranks import Ranks
from traincheck_trace_schema.reading.run import WindowEnd
from traincheck_trace_schema.reading.shard import Findings, Shard, StreamItem
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window


def open_live(
    paths: Paths,
    *,
    run_id: str | None = None,
    rank_timeout: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
    strict: bool = False,
) -> LiveRun:
    """Follow the trace of a run that still grows, or that has not begun.

    Args:
        paths: Folders of shards, or shards; they need not be there yet.
        run_id: The run that is waited for; others in the folders are left out. None takes the first
            that is seen, and of several the newest.
        rank_timeout: Seconds of silence after which a rank that others have overtaken is given up.
        clock: Gives the time in seconds.
        strict: Refuse the first line, or file, that is not as the format says.
    """
    return LiveRun(
        paths=tuple(as_paths(paths)),
        run_id=run_id,
        rank_timeout=rank_timeout,
        clock=clock,
        is_strict=strict,
    )


@attrs.define(kw_only=True, eq=False)
class LiveRun:
    """The trace of a run that still grows.

    `poll` gives what has become available, `finish` the rest. Of a run in which no rank was given
    up, both together give what `Run.stream` gives when the run has ended: the records of each
    process in the same order, and the same ends of windows. Only a window that has nothing but late
    records, of a worker or of a second main process of a rank, does not end.
    """

    paths: tuple[Path, ...]
    rank_timeout: float
    clock: Callable[[], float]
    is_strict: bool
    run_id: str | None = None  # None until its first header is seen
    shards: tuple[Shard, ...] = attrs.field(init=False, default=())
    _processes: list[FollowedProcess] = attrs.field(init=False, factory=list)
    _headers: deque[StreamItem] = attrs.field(init=False, factory=deque)
    _arrivals: Arrivals = attrs.field(init=False)
    _ranks: Ranks = attrs.field(init=False)
    _begun_at: float = attrs.field(init=False)
    _window: Window = attrs.field(init=False, default=BEFORE_FIRST_STEP)
    _is_begun: bool = attrs.field(init=False, default=False)  # the window has records
    _has_ended: bool = attrs.field(init=False, default=False)  # the window, and that was told
    _strangers: dict[str, str] = attrs.field(init=False, factory=dict)  # run ids: what is told
    _is_finished: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self._arrivals = Arrivals(self.paths, self.is_strict)
        self._ranks = Ranks(self.rank_timeout, self.clock)
        self._begun_at = self.clock()

    @property
    def is_over(self) -> bool:
        """Whether every rank of the world wrote its footer, and all was read."""
        return self._ranks.have_ended and all(each.is_at_end for each in self._processes)

    @property
    def processes(self) -> tuple[FollowedProcess, ...]:
        """The processes of the run, in the order of `shards`."""
        return tuple(self._processes)

    @property
    def awaited(self) -> tuple[int, ...]:
        """The ranks that may still tell something of the window that is open.

        What others told of later ones is held back until then.
        """
        return self._ranks.awaited(self._window)

    @property
    def idle_seconds(self) -> float:
        """Seconds since something new was there."""
        heard = (max(each.heard, each.file.changed or 0.0) for each in self._processes)
        return self.clock() - max(heard, default=self._begun_at)

    def poll(self) -> Iterator[StreamItem | WindowEnd]:
        """Yield what has become available, then end: never waits.

        Raises:
            TraceError: there is nothing but what can't be followed, as a trace of another version;
                or the run is read strictly, and a line is no record.
        """
        if not self._is_finished:
            self._join(self._arrivals.look())
            for process in self._processes:
                process.look()
            yield from self._advance()

    def finish(self) -> Iterator[StreamItem | WindowEnd]:
        """Yield all that is left and wait for nobody; afterwards the trace is what was read.

        Raises:
            TraceError: as `poll`.
        """
        self._join(self._arrivals.look(is_last=True))
        self._is_finished = self._ranks.is_closing = True
        for process in self._processes:
            process.finish()
        yield from self._advance()

    def incomplete_because(self) -> tuple[str, ...]:
        """Say why the trace is not all that happened; empty if it is. Ask after `finish`."""
        return (
            *(each.loss for each in self._arrivals.unread),
            *missing_ranks(process.header for process in self._processes),
            *(loss for process in self._in_order() for loss in process.findings.losses()),
        )

    def notes(self) -> tuple[str, ...]:
        """Say what was left out so far, what became of files, and which ranks were given up."""
        told = (
            *(f"{each.problem}; it was left out" for each in self._arrivals.unread if each.problem),
            *self._strangers.values(),
            *(note for process in self._in_order() for note in process.notes()),
            *self._ranks.notes,
        )
        return tuple(dict.fromkeys(told))

    def _advance(self) -> Iterator[StreamItem | WindowEnd]:
        """Yield what is there, up to the window that a rank holds open."""
        while self._headers:
            yield self._headers.popleft()
        ready: list[tuple[Window, int]] = []
        for process in self._processes:
            if item := process.peek():
                heapq.heappush(ready, (item.window, process.index))
            self._ranks.hear(process)
        self._ranks.welcome()
        while True:
            while ready and ready[0][0] <= self._window:
                _, index = heapq.heappop(ready)
                process = self._processes[index]
                yield from self._take(process)
                if item := process.peek():
                    heapq.heappush(ready, (item.window, index))
            if self._ranks.hold(self._window):
                return
            if self._is_begun:
                self._is_begun, self._has_ended = False, True
                yield WindowEnd(self._window, self._ranks.without(self._window))
            if not ready:
                return
            self._window, self._has_ended = ready[0][0], False

    def _take(self, process: FollowedProcess) -> Iterator[StreamItem]:
        """Yield what is there of a process in this window, and late for one that has ended."""
        for item in process.take(self._window):
            if not (self._is_begun or self._has_ended) and item.window == self._window:
                self._is_begun = True
            yield item
        self._ranks.hear(process)

    def _join(self, shards: list[Shard]) -> None:
        """Take in the shards that are of this run."""
        if self.run_id is None and shards:
            self.run_id = max(shards, key=lambda each: each.header.clock.wall_ns).header.run_id
        for shard in sorted(shards, key=lambda shard: shard.order):
            if shard.header.run_id != self.run_id:
                self._leave_out(shard)
                continue
            findings = Findings(path=shard.path, header=shard.header, is_strict=self.is_strict)
            process = FollowedProcess(len(self.shards), shard, findings, self.clock)
            self._headers.append(StreamItem(process.index, shard.raw_header, 1, BEFORE_FIRST_STEP))
            self.shards += (shard,)
            self._processes.append(process)
            self._ranks.add(process)

    def _leave_out(self, shard: Shard) -> None:
        run_id = shard.header.run_id
        note = f"{shard.path}: is of another run, {run_id!r}, which is left out"
        self._strangers.setdefault(run_id, note)

    def _in_order(self) -> list[FollowedProcess]:
        """Return the processes in the order that their shards have in a `Run`."""
        return sorted(self._processes, key=lambda process: process.shard.order)
