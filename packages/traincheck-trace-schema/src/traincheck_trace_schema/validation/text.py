"""The lines of a file that is to be validated, with what each says."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema import strict_json
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.reading.form import problem_of_text
from traincheck_trace_schema.reading.lines import MAX_LINE, LineReader

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_DOCUMENT: Final = 256 * 2**20  # bytes of a file that is one document
_MEGABYTE = 2**20


@attrs.frozen
class Line:
    """A line of JSON Lines: what it says, or what is wrong with its text."""

    number: int
    raw: bytes
    parsed: Any = None
    problem: str = ""
    is_ours: bool = False  # it is spelled as we spell it


@attrs.define
class Lines:
    """Reads the lines of a file, plain or gzip; tells afterwards how the file ended."""

    path: Path
    is_cut: bool = attrs.field(init=False, default=False)  # it ends within a line
    problem: str = attrs.field(init=False, default="")  # why the rest could not be read

    def __iter__(self) -> Generator[Line]:
        number = 0
        with contextlib.closing(LineReader(self.path)) as reader:
            while (piece := reader.read()) is not None:
                for number, line in enumerate(piece, start=number + 1):  # noqa: B020  goes on
                    yield _too_long(number) if line is None else parse(number, line)
            self.problem = reader.problem
            last = parse(number + 1, reader.rest or b"")
            if last.parsed is not None:
                yield last  # whole, only its end of line is not there
            else:
                self.is_cut = reader.is_amid


def parse(number: int, line: bytes) -> Line:
    """Read what a line says, more strictly than a reader of traces does."""
    try:
        parsed = loads(line)
    except ValueError:
        problem = strict_json.why_no_json(line) if line else "is empty"
        return Line(number, line, problem=problem)
    problem = problem_of_text(line, parsed)
    is_ours = strict_json.is_as_we_write(line, parsed)
    if not problem and (not is_ours or b"\\u" in line):
        problem = strict_json.problem_of(line, parsed)
    return Line(number, line, parsed, problem, is_ours)


def _too_long(number: int) -> Line:
    limit = f"{MAX_LINE // _MEGABYTE} MB"
    return Line(number, b"", problem=f"is longer than {limit}, and no reader takes it")


def read_document(path: Path) -> Line:
    """Read a file that is one document, over many lines or on one."""
    pieces: list[bytes | None] = []
    size = 0
    with contextlib.closing(LineReader(path)) as reader:
        while (piece := reader.read()) is not None and size <= MAX_DOCUMENT:
            pieces += piece
            size += sum(map(len, filter(None, piece)))
        rest = reader.rest
    if size > MAX_DOCUMENT or any(each is None for each in (rest, *pieces)):
        return Line(1, b"", problem="is too large for a document, or has a line that is")
    return parse(1, b"\n".join(each for each in (*pieces, rest) if each is not None))
