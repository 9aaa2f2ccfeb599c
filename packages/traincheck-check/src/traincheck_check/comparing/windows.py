"""Reads a run window by window: what each of its ranks did there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeAlias

import attrs

from traincheck_check.comparing.script import Raw
from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.reading import Findings, Run, Stream, StreamItem, WindowEnd
from traincheck_trace_schema.records import Header
from traincheck_trace_schema.window import Window

# A rank, and which of its main processes it is, by age: programs start several one after another.
Lane: TypeAlias = tuple[int, int]


@attrs.frozen(eq=False)
class Slice:
    """The records of a window, by lane."""

    window: Window
    records: Mapping[Lane, list[Raw]]


@attrs.define(eq=False)
class Reader:
    """Reads the main processes of a run's last restart. Holds the records of one window.

    With `last_step`, what comes after that step is no part of the run: that it is missing, or
    that records of it were lost, makes the run no less complete.
    """

    run: Run
    last_step: int | None = None
    headers: dict[Lane, Raw] = attrs.field(factory=dict)  # the last of each process
    workers: int = 0
    going_on: set[Lane] = attrs.field(factory=set)  # after the last step that is read
    _lanes: dict[int, Lane] = attrs.field(factory=dict)  # by process
    _losses: tuple[str, ...] | None = None  # up to the last step, if there is more

    def slices(self) -> Iterator[Slice]:
        """Yield the windows in order."""
        records: dict[int, list[Raw]] = {}
        process, of_process = -1, list[Raw]()
        window: Window | None = None
        stream = self.run.stream()
        for item in stream:
            if isinstance(item, WindowEnd):
                yield self._slice(item.window, records)
                records, process = {}, -1
            else:
                if item.window is not window:
                    window = item.window
                    if self.last_step is not None and window.step > self.last_step:
                        self._stop(item, stream, records)
                        return
                if item.process != process:
                    process = item.process
                    of_process = records.setdefault(process, [])
                of_process.append(item.record)
        if records:
            shard = self.run.shards[0]
            yield self._slice(shard.start, records)

    def incomplete_because(self) -> tuple[str, ...]:
        """Say why what was read is not all that happened. Ask after the slices."""
        return self.run.incomplete_because() if self._losses is None else self._losses

    def _stop(self, first: StreamItem, stream: Stream, records: Mapping[int, list[Raw]]) -> None:
        """Find out which processes go on after the last step: these were whole up to there."""
        if not self._lanes:
            self._name_lanes(records)
        losses = list(self.run.incomplete_because())
        ends = {process: self._no_end(process) for process in range(len(self.run.shards))}
        open_ = {process: end for process, end in ends.items() if end in losses}
        for item in chain((first,), stream):
            if isinstance(item, WindowEnd):
                # One that is silent in this window may still go on.
                if not any(
                    process in self._lanes and self._lanes[process][0] not in item.without
                    for process in open_
                ):
                    break
            elif item.process in open_:
                losses.remove(open_.pop(item.process))
                if item.process in self._lanes:
                    self.going_on.add(self._lanes[item.process])
        self._losses = tuple(losses)

    def _no_end(self, process: int) -> str | None:
        """Return how a run words that a process left no footer; None: it need not."""
        shard = self.run.shards[process]
        lane = self._lanes.get(process)
        header = structure(Header, self.headers[lane]) if lane else shard.header
        return next(Findings(path=shard.path, header=header).losses(), None)

    def _slice(self, window: Window, records: Mapping[int, list[Raw]]) -> Slice:
        if not self._lanes:
            self._name_lanes(records)
        by_lane = {}
        for process, of_process in records.items():
            lane = self._lanes.get(process)
            if lane is not None:
                by_lane[lane] = of_process
                for record in of_process:
                    if record["kind"] == "header":
                        self.headers[lane] = record
        return Slice(window, by_lane)

    def _name_lanes(self, records: Mapping[int, list[Raw]]) -> None:
        """Give each process its rank, which it may have learned after its first header."""
        last: dict[int, Raw] = {}
        for process, shard in enumerate(self.run.shards):
            told = [each for each in records.get(process, ()) if each["kind"] == "header"]
            last[process] = told[-1] if told else shard.raw_header
        mains = {process: each for process, each in last.items() if each["role"] == "main"}
        self.workers = len(last) - len(mains)
        restart = max((each.get("restart", 0) for each in mains.values()), default=0)
        counts: dict[int, int] = {}
        for process in sorted(mains, key=lambda process: _age(mains[process])):
            header = mains[process]
            if header.get("restart", 0) == restart:
                rank = header["rank"]
                lane = rank, counts.get(rank, 0)
                counts[rank] = counts.get(rank, 0) + 1
                self._lanes[process], self.headers[lane] = lane, header


def _age(header: Raw) -> tuple[int, int]:
    return header["clock"]["wall_ns"], header["pid"]


def in_step(
    a: Iterator[Slice], b: Iterator[Slice]
) -> Iterator[tuple[Window, Slice | None, Slice | None]]:
    """Yield the windows of two runs, those that are the same together."""
    x, y = next(a, None), next(b, None)
    while x is not None or y is not None:
        if x is not None and (y is None or x.window < y.window):
            yield x.window, x, None
            x = next(a, None)
        elif y is not None and (x is None or y.window < x.window):
            yield y.window, None, y
            y = next(b, None)
        elif x is not None:
            yield x.window, x, y
            x, y = next(a, None), next(b, None)
