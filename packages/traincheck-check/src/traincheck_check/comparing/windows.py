"""Reads a run window by window: what each of its ranks did there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import attrs

from traincheck_check.comparing.script import Raw
from traincheck_trace_schema.reading import Run, WindowEnd
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
    """Reads the main processes of a run's last restart. Holds the records of one window."""

    run: Run
    headers: dict[Lane, Raw] = attrs.field(factory=dict)  # the last of each process
    workers: int = 0
    _lanes: dict[int, Lane] = attrs.field(factory=dict)  # by process

    def slices(self) -> Iterator[Slice]:
        """Yield the windows in order."""
        records: dict[int, list[Raw]] = {}
        process, of_process = -1, list[Raw]()
        for item in self.run.stream():
            if isinstance(item, WindowEnd):
                yield self._slice(item.window, records)
                records, process = {}, -1
            else:
                if item.process != process:
                    process = item.process
                    of_process = records.setdefault(process, [])
                of_process.append(item.record)
        if records:
            shard = self.run.shards[0]
            yield self._slice(shard.start, records)

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
