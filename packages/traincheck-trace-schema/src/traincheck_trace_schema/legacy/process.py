"""The processes of a run that TrainCheck 0.x recorded, each read as a shard of 1.0."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.legacy.conversion import Conversion
from traincheck_trace_schema.legacy.facts import Facts, Seat, seats
from traincheck_trace_schema.legacy.source import Lost, Source, merged
from traincheck_trace_schema.reading.findings import RECORDED_BY_0_X, Findings
from traincheck_trace_schema.reading.placing import StreamItem
from traincheck_trace_schema.reading.shard import Shard
from traincheck_trace_schema.records import SCHEMA, VERSION, Header
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window, window_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_ENDS = 2**16  # bytes at either end of a file that its run is known by


@attrs.frozen(kw_only=True)
class LegacyProcess(Shard):
    """What one process wrote with TrainCheck 0.x: a file a thread and kind, and a shared log."""

    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        """What stands for a file's name: the process has several."""
        return f"process {self.header.pid}"

    def read(self, process: int, findings: Findings) -> Iterator[StreamItem]:
        """Yield the records of the process, as 1.0 has them.

        There is a gap where lines are no records, and a footer if no file is cut and no call of the
        first thread was left open.
        """
        findings.take(self.raw_header)
        files = [findings.of_file(one.path) for one in self.sources]
        conversion = Conversion()
        window, number = BEFORE_FIRST_STEP, 1
        for number, raw in merged(self.sources, self.header.pid, files):
            for record in self._converted(conversion, raw):
                window = max(window, window_of(record))
                yield StreamItem(process, record, number, window)
        for each in files:
            findings.add(each)
        if unmatched := conversion.calls.unmatched:
            findings.notes.append(
                f"{self.path.parent}: {self.name}: ends of calls whose begin is not in the trace: "
                f"{unmatched}; they were left out"
            )
        if conversion.has_ended() and not (findings.given_up or findings.is_cut):
            footer = conversion.footer()
            findings.take(footer)
            yield StreamItem(process, footer, number, window)

    def _converted(
        self, conversion: Conversion, raw: dict[str, Any] | Lost
    ) -> Iterable[dict[str, Any]]:
        if isinstance(raw, dict):
            return conversion.convert(raw)
        # Workers are killed when their data is used up, which loses nothing of the run.
        is_usual = raw.is_cut and self.header.role == "worker"
        return () if is_usual else (conversion.lose(raw),)


def open_processes(paths: Sequence[Path]) -> list[Shard]:
    """Open the processes that wrote the given files of one folder; they are one run.

    Files without a record are passed over.

    Raises:
        TraceError: a file cannot be read.
    """
    paths = sorted(paths)
    processes: dict[int, Facts] = {}
    began = {path: _look_into(path, processes) for path in paths}
    if not processes:
        return []
    sources: dict[int, list[Source]] = {pid: [] for pid in processes}
    for path, by_pid in began.items():
        for pid, time in (by_pid or _of_name(path, processes)).items():
            sources[pid].append(Source(path, time))
    run_id = _run_id(paths)
    placed = seats(list(processes.values()))
    return [
        _open(facts, placed[pid], run_id, sources[pid])
        for pid, facts in sorted(processes.items(), key=lambda one: (placed[one[0]].rank, one[0]))
    ]


def why_no_record(path: Path) -> str:
    """Say why there is no record in a file; empty if it is empty, or ends within its first."""
    try:
        list(Source(path).read(Findings(path=path, is_strict=True)))
    except TraceError as error:
        return str(error)
    return ""


def _of_name(path: Path, processes: Mapping[int, Facts]) -> dict[int, int]:
    """Return whose file it is that has no whole record: it may tell that the process was killed."""
    numbers = [int(digits) for digits in re.findall(r"_([0-9]{1,18})(?=_)", path.name)]
    pid = next((number for number in numbers if number in processes), min(processes))
    return {pid: processes[pid].began}


def _look_into(path: Path, processes: dict[int, Facts]) -> dict[int, int]:
    """Take the facts from the beginning of a file; return its processes, and when each began.

    A file of a thread is that of the process of its first record. The shared log is read to its
    end, since a process may begin anywhere in it.
    """
    source = Source(path)
    began: dict[int, int] = {}
    for _, record in source.read(Findings(path=path)):
        if isinstance(record, Lost):
            continue
        pid = record["process_id"] if source.is_shared else next(iter(began), record["process_id"])
        facts = processes.setdefault(pid, Facts(pid, record["time"]))
        if pid not in began:
            began[pid] = record["time"]
            facts.next_file()
        if not facts.is_enough:
            facts.look_at(record, is_proxy=source.is_shared)
        elif not source.is_shared:
            break
    return began


def _open(facts: Facts, seat: Seat, run_id: str, sources: Sequence[Source]) -> LegacyProcess:
    raw = _header(facts, seat, run_id)
    process = LegacyProcess(
        path=sources[0].path,
        header=structure(Header, raw),
        raw_header=raw,
        start=BEFORE_FIRST_STEP,
        sources=tuple(sources),
    )
    return attrs.evolve(process, start=_start(process))


def _start(process: LegacyProcess) -> Window:
    first = next(process.read(0, Findings(path=process.path)), None)
    return first.window if first else BEFORE_FIRST_STEP


def _header(facts: Facts, seat: Seat, run_id: str) -> dict[str, Any]:
    """Make up a header; what 0.x does not tell is left out, or empty where it may not be."""
    return {
        "kind": "header",
        "schema": SCHEMA,
        "version": VERSION,
        "run_id": run_id,
        "host": "",
        "pid": facts.pid,
        "role": seat.role,
        "rank": seat.rank,
        "local_rank": seat.rank,
        "world_size": seat.world_size,
        "versions": dict(RECORDED_BY_0_X),
        "tracker": facts.tracker,
        "tensor_format": facts.tensor_format,
        "clock": {"wall_ns": 0, "monotonic_ns": facts.began},
        "recording": {"mode": "full"},
    }


def _run_id(paths: Sequence[Path]) -> str:
    """Return an id that depends on what the files are called and hold, not on where they lie."""
    known = hashlib.blake2b(digest_size=8)
    for path in paths:
        for part in _ends(path):
            known.update(part)
    return f"legacy-{known.hexdigest()}"


def _ends(path: Path) -> Iterator[bytes]:
    """Yield what a file is known by: its name, its size, and how it begins and ends."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            yield f"{path.name}\0{size}\0".encode(errors="surrogateescape")
            for offset in (0, max(0, size - _ENDS)):
                file.seek(offset)
                yield file.read(_ENDS)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
