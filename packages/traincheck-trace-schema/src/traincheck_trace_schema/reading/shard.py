"""One shard of a trace: its header, its records in order, and what reading it found out."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import dumps, loads, structure
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.form import is_well_formed
from traincheck_trace_schema.records import SCHEMA, VERSION, Header
from traincheck_trace_schema.version import check_version
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window, window_of

if TYPE_CHECKING:
    from collections.abc import Generator


_WITHOUT_WINDOW = frozenset({"header", "footer"})
_ABOUT_THE_SHARD = _WITHOUT_WINDOW | {"gap"}
_TOLD = 5  # malformed lines of a shard that are told one by one
_SHOWN = 60  # characters of a malformed line


@attrs.frozen
class StreamItem:
    """A record of a run.

    `process` is the index of its shard in `Run.shards`, `window` the one that it is read in.
    """

    process: int
    record: dict[str, Any]
    line: int
    window: Window


@attrs.frozen(kw_only=True)
class Shard:
    """What one process wrote."""

    path: Path
    header: Header  # the first; a later one may say more
    raw_header: dict[str, Any] = attrs.field(repr=False)
    start: Window  # of its first record

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name


@attrs.define(kw_only=True)
class Findings:
    """What reading a shard found out about it."""

    path: Path
    header: Header | None = None  # the last one
    has_footer: bool = False
    missing: Counter[str] = attrs.field(factory=Counter)  # reason: records, at least
    malformed: int = 0
    backwards: int = 0
    notes: list[str] = attrs.field(factory=list)

    def take(self, record: dict[str, Any]) -> None:
        """Take a header, a footer or a gap.

        Raises:
            TraceError: it is a header with a wrong field.
        """
        kind = record["kind"]
        if kind == "header":
            self.header = structure(Header, record)
        elif kind == "footer":
            self.has_footer = True
        else:
            count = record.get("count")
            self.missing[str(record.get("reason"))] += count if isinstance(count, int) else 1

    def on_malformed(self, number: int, line: bytes) -> None:
        """Count a line that is no record."""
        self.malformed += 1
        if self.malformed <= _TOLD:
            shown = line.decode(errors="replace").strip()[:_SHOWN]
            self.notes.append(f"{self.path}:{number}: skipped, it is no record: {shown!r}")

    def on_cut(self, number: int) -> None:
        """Tell of a last line that is not whole."""
        self.notes.append(f"{self.path}:{number}: the last line is cut and was left out")

    def on_end(self) -> None:
        """Tell what can be told only now."""
        if self.malformed > _TOLD:
            more = self.malformed - _TOLD
            self.notes.append(f"{self.path}: {more} more lines were skipped, they are no records")
        if self.backwards:
            self.notes.append(
                f"{self.path}: records that come after one of a later window: {self.backwards}; "
                "they were read as part of that window"
            )


def open_shard(path: Path) -> Shard | None:
    """Read where a shard begins; None if its process died before it had written its header.

    Raises:
        TraceError: the file cannot be read, or is no trace of a version known here.
    """
    findings = Findings(path=path)
    with contextlib.closing(_read_objects(path, findings)) as objects:
        number, raw = next(objects, (0, None))
    if raw is None and not findings.malformed:
        return None
    if raw is None or number != 1 or raw.get("kind") != "header":
        raise TraceError(f"{path}:1: must be the header of a trace of traincheck-collect")
    check_version(raw, schema=SCHEMA, known=VERSION, where=f"{path}:1", error=TraceError)
    header = structure(Header, raw, where=f"{path}:1")
    with contextlib.closing(read_shard(path, 0, findings)) as items:
        first = next(items, None)
    start = first.window if first else BEFORE_FIRST_STEP
    return Shard(path=path, header=header, raw_header=raw, start=start)


def read_shard(path: Path, process: int, findings: Findings) -> Generator[StreamItem]:
    """Yield the records of a shard after its first header.

    A footer and a later header have no window; they are placed in that of the record before them.
    """
    window, last_place = BEFORE_FIRST_STEP, None
    for number, record in _read_objects(path, findings):
        kind = record["kind"]
        if kind in _ABOUT_THE_SHARD:
            try:
                findings.take(record)
            except TraceError:
                findings.on_malformed(number, dumps(record).encode())
                continue
        if not is_well_formed(record):
            findings.on_malformed(number, dumps(record).encode())
            continue
        if kind not in _WITHOUT_WINDOW:
            place = record.get("step"), record.get("eval_pass", 0), record.get("eval_step")
            if place != last_place:  # seldom: the rest of the loop is for each record
                if not _is_place(*place):
                    findings.on_malformed(number, dumps(record).encode())
                    continue
                last_place, own = place, window_of(record)
                findings.backwards += own < window
                window = max(window, own)
        if number > 1:
            yield StreamItem(process, record, number, window)
    findings.on_end()


def _is_place(step: Any, eval_pass: Any, eval_step: Any) -> bool:
    return type(step) is int and type(eval_pass) is int and type(eval_step) in {int, type(None)}


def _read_objects(path: Path, findings: Findings) -> Generator[tuple[int, dict[str, Any]]]:
    for number, line in _read_lines(path, findings):
        try:
            record = loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict) and type(record.get("kind")) is str:
            yield number, record
        elif line.endswith(b"\n"):
            findings.on_malformed(number, line)
        else:
            findings.on_cut(number)


def _read_lines(path: Path, findings: Findings) -> Generator[tuple[int, bytes]]:
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile):
        findings.on_cut(number + 1)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")
