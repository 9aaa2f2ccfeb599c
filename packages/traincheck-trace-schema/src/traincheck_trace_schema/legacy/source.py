"""The files of 0.x: their records in order, of one file and of all files of a process."""

from __future__ import annotations

import heapq
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.legacy.detection import PROXY_LOG, STATE, is_legacy_record
from traincheck_trace_schema.reading.lines import MAX_LINE, LineReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_trace_schema.reading.findings import Findings

_INT64: Final = 2**63
_MOST_BARREN: Final = 1_000_000  # lines without a record, before the rest of a file is given up
_BARREN_PIECE: Final = 50  # what a piece counts that gives fewer: compressed, billions are empty
_SHOWN: Final = 60  # characters of a line that is no record
_CALL: Mapping[str, type] = {"func_call_id": str, "function": str}
_STATE: Mapping[str, type] = {"var_name": str, "var_type": str, "attributes": dict}
_ARGUMENTS: Mapping[str, type] = {"args": dict, "kwargs": dict}


@attrs.frozen
class Lost:
    """Stands in the place of lines that are no records, or of the rest of a file."""

    count: int | None
    detail: str
    is_cut: bool = False  # the file ends within a line


Item: TypeAlias = tuple[int, dict[str, Any] | Lost]  # with the number of its line


@attrs.frozen
class Source:
    """A file of 0.x: of one thread of a process, or the log that all processes share."""

    path: Path
    began: int = 0  # the time of its first record that is of the process

    @property
    def is_shared(self) -> bool:
        """Whether several processes write it."""
        return self.path.name.startswith(PROXY_LOG)

    def read(self, findings: Findings) -> Iterator[Item]:
        """Yield the records with the numbers of their lines; tell of what is none.

        Args:
            findings: Those of this file.

        Raises:
            TraceError: a line is no record, and `findings` are strict.
        """
        reader = LineReader(self.path)
        number, barren, idle = 0, 0, 0
        while not findings.given_up and (lines := _next_lines(reader, findings)) is not None:
            first = number + 1
            idle += max(len(lines), _BARREN_PIECE)
            for number, line in enumerate(lines, first):
                record = None if line is None else _record(line)
                if record is not None:
                    if barren:
                        yield number, self._lost(barren)
                    barren, idle = 0, 0
                    yield number, record
                elif line is None or line.strip():
                    barren += 1
                    findings.on_malformed(number, _problem(line))
            if idle > _MOST_BARREN:
                findings.give_up(f"{self.path}:{number}: gives no more record for too long")
        if barren:
            yield number, self._lost(barren)
        yield from self._end(reader, number, findings)

    def _lost(self, count: int) -> Lost:
        return Lost(count, f"{self.path.name}: lines that are no records")

    def _end(self, reader: LineReader, number: int, findings: Findings) -> Iterator[Item]:
        """Yield what comes of the end of the file, after so many lines."""
        if findings.given_up:
            yield number, Lost(None, f"{self.path.name}: was not read to its end")
        elif reader.rest and (record := _record(reader.rest)) is not None:
            yield number + 1, record  # 0.x did not always end the last line
        elif reader.problem or reader.is_amid:
            findings.on_cut(number + 1)
            yield number + 1, Lost(1, f"{self.path.name}: the last line is cut", is_cut=True)


def merged(sources: Sequence[Source], pid: int, findings: Sequence[Findings]) -> Iterator[Item]:
    """Yield the records of a process from all its files, by time; each file is in order of time.

    A file is read from when its first record is due: a process may have many threads. What is lost
    of a file is told before the next record that is due.

    Args:
        sources: The files.
        pid: The process.
        findings: Those of each file.
    """
    heap = [(source.began, index) for index, source in enumerate(sources)]
    heapq.heapify(heap)
    begun: dict[int, Iterator[Item]] = {}
    due: dict[int, tuple[int, dict[str, Any]]] = {}
    while heap:
        index = heap[0][1]
        if index in due:
            yield due.pop(index)
        else:
            begun[index] = _of_process(sources[index], pid, findings[index])
        for number, record in begun[index]:
            if isinstance(record, dict):
                due[index] = number, record
                heapq.heapreplace(heap, (record["time"], index))
                break
            yield number, record
        else:
            heapq.heappop(heap)


def _of_process(source: Source, pid: int, findings: Findings) -> Iterator[Item]:
    for number, record in source.read(findings):
        if isinstance(record, Lost) or not source.is_shared or record["process_id"] == pid:
            yield number, record


def _next_lines(reader: LineReader, findings: Findings) -> list[bytes | None] | None:
    """Return the next lines; the file is open only meanwhile, since there may be many."""
    try:
        return reader.read()
    except TraceError as error:
        findings.give_up(str(error))
        return None
    finally:
        reader.close()


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the record that a line holds, if it has what gives it its meaning."""
    try:
        record = loads(line)
        if b"\\u" in line:  # maybe half of a surrogate pair, which no text of 1.0 may hold
            record = loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return record if is_legacy_record(record) and _is_well_formed(record) else None


def _is_well_formed(record: dict[str, Any]) -> bool:
    """Whether the fields that give a record its meaning are there, and of the right type."""
    form = _STATE if record["type"] == STATE else _CALL
    return (
        all(_is_int64(record.get(name)) for name in ("process_id", "thread_id", "time"))
        and record["process_id"] >= 0
        and type(record.get("meta_vars")) is dict
        and all(type(record.get(name)) is expected for name, expected in form.items())
        and all(record[name] for name, expected in form.items() if expected is str)
        and all(
            record.get(name) is None or type(record[name]) is expected
            for name, expected in _ARGUMENTS.items()
        )
    )


def _problem(line: bytes | None) -> str:
    if line is None:
        return f"is longer than {MAX_LINE} bytes"
    return f"is no record of TrainCheck 0.x: {line.decode(errors='replace').strip()[:_SHOWN]!r}"


def _is_int64(number: Any) -> bool:
    return type(number) is int and -_INT64 <= number < _INT64
