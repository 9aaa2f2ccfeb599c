"""One shard of a trace: its header, and its records in order."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.constraints import shown
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.findings import Findings, read_header
from traincheck_trace_schema.reading.form import problem_of_text
from traincheck_trace_schema.reading.lines import LineReader
from traincheck_trace_schema.reading.placing import Placer, StreamItem
from traincheck_trace_schema.records import SCHEMA, VERSION, Header, Recording
from traincheck_trace_schema.strict_json import problem_of
from traincheck_trace_schema.version import check_version
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Findings",
    "NoHeaderError",
    "OtherVersionError",
    "Shard",
    "ShardReader",
    "StreamItem",
    "open_shard",
    "parse_header",
]

# What a shard may hold without a record in between, before the rest of it is given up.
_MOST_LINES: Final = 1_000_000
_MOST_BYTES: Final = 2**30
_MOST_PIECES: Final = 10_000  # before the first line: compressed, there may be billions of none
_SHOWN: Final = 40  # bytes of what is no header
_HEADER: Final = b'{"kind"'  # how one begins that may have been cut


class NoHeaderError(TraceError):
    """A file does not begin with the header of a trace."""


class OtherVersionError(TraceError):
    """A trace is of a major version that is not known here."""


@attrs.frozen(kw_only=True)
class Shard:
    """What one process wrote."""

    path: Path
    header: Header  # the first; a later one may say more
    raw_header: dict[str, Any] = attrs.field(repr=False)
    start: Window  # no record is of an earlier one

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def order(self) -> tuple[int, bool, str, str]:
        """Sorts the shards of a run: by rank, the main process first."""
        return self.header.rank, self.header.role != "main", self.name, str(self.path)

    def read(self, process: int, findings: Findings) -> Iterator[StreamItem]:
        """Yield what follows the first header.

        Args:
            process: The shard's index in `Run.shards`, for the items.
            findings: Where all else is told that is found.

        Raises:
            TraceError: `findings` are strict, and a line is no record.
        """
        # Not a generator of its own: each that a record passes through takes time.
        reader = ShardReader(LineReader(self.path), process, findings)
        return chain.from_iterable(_pieces(reader))


@attrs.frozen
class SharedRecordings:
    """Lets shards share what their headers say alike of what was recorded, often by many names.

    A run may have thousands of shards: each pass over a data set starts its workers anew.
    """

    _known: list[tuple[dict[str, Any], Recording]] = attrs.field(factory=list)

    def of(self, shard: Shard) -> Shard:
        """Return the shard with what it shares."""
        own = shard.raw_header["recording"], shard.header.recording
        shared = next((each for each in self._known if each[0] == own[0]), None)
        if shared is None:
            self._known.append(own)
            return shard
        told, recording = shared
        return attrs.evolve(
            shard,
            header=attrs.evolve(shard.header, recording=recording),
            raw_header={**shard.raw_header, "recording": told},
        )


class ShardReader:
    """Reads a shard piece by piece, also while it grows."""

    def __init__(self, lines: LineReader, process: int, findings: Findings) -> None:
        self.lines = lines
        self._placer = Placer(process, findings)
        self._findings = findings
        self._is_begun = False
        self._given: int | None = None  # lines of the last piece, until it is looked back at
        self._malformed = 0  # before it
        self._barren_lines = 0
        self._barren_since = 0  # bytes of text before what has no record

    def read(self) -> Iterator[StreamItem] | None:
        """Return the records of the next piece, to be read to their end; None if there is none.

        Raises:
            TraceError: `findings` are strict, and the file can't be read.
        """
        self._give_up_if_barren()
        if self._findings.given_up:
            return None
        try:
            lines = self.lines.read()
        except TraceError as error:
            self._findings.give_up(str(error))
            return None
        if lines is None:
            return None
        if lines and not self._is_begun:
            self._is_begun = True
            del lines[0]  # the header
        self._given, self._malformed = len(lines), self._findings.malformed
        return self._placer.place(lines, is_plain=self.lines.is_plain)

    def rest(self) -> Iterator[StreamItem]:
        """Yield the record of a last line that lacks only its end, and tell of what is cut."""
        lines, findings = self.lines, self._findings
        if lines.problem:
            findings.give_up(f"{lines.path}: {lines.problem}")
        elif lines.was_replaced:
            findings.give_up(f"{lines.path}: was replaced while it was read")
        if findings.given_up or not lines.is_amid:
            return
        if not self._is_begun:  # then it is the header
            return
        if _is_json(lines.rest):
            yield from self._placer.place([lines.rest])
        else:
            findings.on_cut(self._placer.line + 1)

    def close(self) -> None:
        """Close the file; the next `read` opens it again."""
        self.lines.close()

    def _give_up_if_barren(self) -> None:
        """Look back at the last piece; compressed, what holds nothing may be very long."""
        given, self._given = self._given, None
        if given is None:
            return
        if self._findings.malformed - self._malformed < given:
            self._barren_lines, self._barren_since = 0, self.lines.size
            return
        self._barren_lines += max(1, given)  # a piece may give no line
        size = self.lines.size - self._barren_since
        if self._barren_lines > _MOST_LINES or size > _MOST_BYTES:
            self._findings.give_up(
                f"{self.lines.path}:{self._placer.line}: "
                f"no record in {self._barren_lines} lines, {size} bytes"
            )


def _pieces(reader: ShardReader) -> Iterator[Iterator[StreamItem]]:
    while (items := reader.read()) is not None:
        reader.close()  # of a thousand processes all are read in turn: so many can't be open
        yield items
    yield reader.rest()


def open_shard(path: Path, *, is_strict: bool = False) -> Shard | None:
    """Read where a shard begins; None if its process died before it had written its header.

    Raises:
        OtherVersionError: it is of a version that is not known here.
        NoHeaderError: it is no trace of a version 1 or later.
        TraceError: it cannot be read, or its header is wrong.
    """
    reader = LineReader(path)
    try:
        lines = _first_lines(reader)
        if lines is None:
            return None
        line, *others = lines
        raw, header = parse_header(path, line, is_strict=is_strict)
        first = _first_record(reader, header, others)
    finally:
        reader.close()
    start = first.window if first else BEFORE_FIRST_STEP
    return Shard(path=path, header=header, raw_header=raw, start=start)


def _first_lines(reader: LineReader) -> list[bytes | None] | None:
    """Return the first lines, at least one; None if what is there may be the start of a header."""
    lines: list[bytes | None] | None = []
    for _ in range(_MOST_PIECES):
        lines = reader.read()
        if lines is None or lines or reader.is_skipping:
            break
    else:
        raise NoHeaderError(f"{reader.path}: has no line in its first {_MOST_PIECES} pieces")
    if reader.problem:
        raise NoHeaderError(f"{reader.path}: {reader.problem}")
    if lines:
        return lines
    if reader.is_skipping:
        return [None]
    is_whole = _is_json(reader.rest) or not _HEADER.startswith(reader.rest[: len(_HEADER)])
    return [reader.rest] if is_whole else None


def _first_record(
    reader: LineReader, header: Header, lines: list[bytes | None]
) -> StreamItem | None:
    """Return the first record, if there is one in the piece of the header or in the next."""
    placer = Placer(0, Findings(path=reader.path, header=header))
    return next(placer.place(lines), None) or next(placer.place(reader.read() or ()), None)


def parse_header(
    path: Path, line: bytes | None, *, is_strict: bool = False
) -> tuple[dict[str, Any], Header]:
    """Read the first line of a shard, without its end; None: it is too long.

    Raises:
        OtherVersionError: it is of a version that is not known here.
        NoHeaderError: it is no header of a trace.
        TraceError: a field is wrong.
    """
    where = f"{path}:1"
    try:
        raw = None if line is None else loads(line)
    except ValueError:
        raw = None
    if line is None or not isinstance(raw, dict) or raw.get("kind") != "header":
        raise NoHeaderError(f"{where}: must be the header of a trace, got {_worded(line, raw)}")
    check_version(raw, schema=SCHEMA, known=VERSION, where=where, error=OtherVersionError)
    if problem := (problem_of(line, raw) if is_strict else problem_of_text(line, raw)):
        raise TraceError(f"{where}: {problem}")
    return raw, read_header(raw, where=where)


def _worded(line: bytes | None, parsed: object) -> str:
    """Say what stands where a header should."""
    if line is None:
        return "a line that is too long"
    if isinstance(parsed, dict):
        kind = parsed.get("kind")
        return f"a record of kind {shown(kind)}" if "kind" in parsed else "an object without 'kind'"
    return shown(line[:_SHOWN].decode(errors="replace").strip())


def _is_json(line: bytes) -> bool:
    try:
        loads(line)
    except ValueError:
        return False
    return True
