"""Read a run: all shards of its trace as one stream of records, in the order of windows."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.shard import (
    Findings,
    Shard,
    StreamItem,
    open_shard,
    read_shard,
)
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Run", "Shard", "Stream", "StreamItem", "WindowEnd", "open_run", "open_runs"]

_PATTERNS = ("trace_*.json", "trace_*.json.gz")
_LOSING = (
    "disk",
    "queue",
    "encoding",
    "fault",
    "limit",
)  # reasons of a gap; sampling loses nothing


@attrs.frozen
class WindowEnd:
    """Every record of this window, of all processes, came before.

    `without` are the ranks of the world that took no part in it: they left no trace, had ended
    without a footer, or were given up.
    """

    window: Window
    without: tuple[int, ...] = ()


Stream: TypeAlias = "Iterator[StreamItem | WindowEnd]"


@attrs.define(kw_only=True)
class Run:
    """The trace of a run: shards that share a run id, by rank, a rank's main process first."""

    run_id: str
    shards: tuple[Shard, ...]
    _headless: tuple[Path, ...] = attrs.field(alias="headless")  # shards that end in the header
    _findings: tuple[Findings, ...] = attrs.field(init=False, default=())

    def stream(self) -> Stream:
        """Yield the headers, then all records of each window, then its end.

        Within a window the shards follow one another, each in its own order. Memory does not
        depend on the length of the trace. May be called again.
        """
        self._findings = tuple(Findings(path=shard.path) for shard in self.shards)
        cursors = []
        for process, (shard, findings) in enumerate(zip(self.shards, self._findings, strict=True)):
            yield StreamItem(process, shard.raw_header, 1, BEFORE_FIRST_STEP)
            cursors.append(_Cursor(process, shard, findings))
        yield from _merge(cursors)

    def incomplete_because(self) -> tuple[str, ...]:
        """Say why the trace is not all that happened; empty if it is. Ask after the stream."""
        return (
            *(f"{path.name}: ends within its header" for path in self._headless),
            *self._missing_ranks(),
            *(reason for findings in self._findings for reason in _losses(findings)),
        )

    def notes(self) -> tuple[str, ...]:
        """Say what was skipped while reading. Ask after the stream."""
        return tuple(note for findings in self._findings for note in findings.notes)

    def _missing_ranks(self) -> Iterator[str]:
        headers = [each.header for each in self._findings if each.header]
        mains = [header for header in headers if header.role == "main"]
        world_size = max((header.world_size for header in mains), default=0)
        for rank in sorted(set(range(world_size)) - {header.rank for header in mains}):
            yield f"rank {rank} of {world_size} left no trace"


def open_run(paths: Sequence[Path]) -> Run:
    """Open the trace of one run: folders of shards, or shards.

    Raises:
        TraceError: there is no trace, it cannot be read, or it is of several runs.
    """
    runs = open_runs(paths)
    if len(runs) > 1:
        ids = ", ".join(repr(run.run_id) for run in runs)
        raise TraceError(f"{_listed(paths)}: must hold the trace of one run, got {ids}")
    return runs[0]


def open_runs(paths: Sequence[Path]) -> list[Run]:
    """Open the traces of runs, one `Run` a run id, in the order of the paths.

    Raises:
        TraceError: there is no trace, or one cannot be read.
    """
    shards: dict[str, list[Shard]] = {}
    headless: list[Path] = []
    for path in _shard_paths(paths):
        shard = open_shard(path)
        if shard is None:
            headless.append(path)
        else:
            shards.setdefault(shard.header.run_id, []).append(shard)
    if not shards:
        raise TraceError(f"{_listed(paths)}: has no records, the program ended before it wrote any")
    return [
        Run(
            run_id=run_id,
            shards=tuple(sorted(members, key=_order)),
            headless=tuple(path for path in headless if _is_beside(path, members)),
        )
        for run_id, members in shards.items()
    ]


@attrs.define
class _Cursor:
    """A place in a shard, whose file is opened only when the stream gets there.

    A run may have thousands of shards (each pass over a data set starts its workers anew), of
    which few are read at a time; a process may have about a thousand files open.
    """

    process: int
    shard: Shard
    findings: Findings
    window: Window | None = attrs.field(init=False)  # None: at the end
    _items: Iterator[StreamItem] | None = attrs.field(init=False, default=None)
    _next: StreamItem | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.window = self.shard.start

    def take(self) -> Iterator[StreamItem]:
        """Yield the records of the window that the cursor stands in, and go on to the next."""
        if self._items is None:
            self._items = read_shard(self.shard.path, self.process, self.findings)
            self._next = next(self._items, None)
        item = self._next
        while item is not None and item.window == self.window:
            yield item
            item = next(self._items, None)
        self._next = item
        self.window = item.window if item else None


def _merge(cursors: Sequence[_Cursor]) -> Stream:
    heap = [(cursor.window, cursor.process) for cursor in cursors if cursor.window]
    heapq.heapify(heap)
    while heap:
        window, process = heap[0]
        cursor = cursors[process]
        yield from cursor.take()
        if cursor.window:
            heapq.heapreplace(heap, (cursor.window, process))
        else:
            heapq.heappop(heap)
        if not heap or heap[0][0] != window:
            yield WindowEnd(window)


def _shard_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the shards' files, each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        members = _shards_in(path) if path.is_dir() else [path]
        for member in members:
            found.setdefault(member.resolve(), member)
    return list(found.values())


def _shards_in(folder: Path) -> list[Path]:
    members = sorted(member for pattern in _PATTERNS for member in folder.glob(pattern))
    if not members:
        raise TraceError(
            f"{folder}: holds no trace; a trace is files named trace_*.json or trace_*.json.gz, "
            "written by traincheck-collect"
        )
    return members


def _order(shard: Shard) -> tuple[int, bool, str, str]:
    return shard.header.rank, shard.header.role != "main", shard.name, str(shard.path)


def _is_beside(path: Path, shards: Sequence[Shard]) -> bool:
    return path.parent in {shard.path.parent for shard in shards}


def _losses(findings: Findings) -> Iterator[str]:
    name = findings.path.name
    if findings.header and findings.header.role == "main" and not findings.has_footer:
        yield f"{name}: rank {findings.header.rank} did not end cleanly, there is no footer"
    for reason in _LOSING:
        if count := findings.missing[reason]:
            yield f"{name}: at least {count} records were lost ({reason})"
    if findings.malformed:
        yield f"{name}: lines that are no records: {findings.malformed}"


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))
