"""Whether a text is JSON Lines, or something else that would have a problem in each line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traincheck_trace_schema.validation.text import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from traincheck_trace_schema.validation.text import Line

_HEAD: Final = 20  # lines, one of which should be a record
_SOME: Final = 3  # of them, without which a file has too few to tell
_ONE_A_LINE: Final = "a trace is JSON Lines, one record a line"


def beginning(first: Line, following: Iterator[Line]) -> Iterator[Line]:
    """Yield the next lines, up to the first record of all."""
    if _is_record(first):
        return
    for line in following:
        yield line
        if _is_record(line) or line.number >= _HEAD:
            return


def why_no_lines(path: Path, head: Sequence[Line]) -> str:
    """Say why no line of a file is a record; empty if one is."""
    if any(map(_is_record, head)):
        return ""
    first = head[0]
    if len(head) < _SOME and first.parsed is None:
        return first.problem
    if read_document(path).parsed is not None:
        return f"is one JSON text; {_ONE_A_LINE}"
    problem = first.problem or "is no trace"
    return f"{problem}; none of the first {len(head)} lines is a record ({_ONE_A_LINE})"


def _is_record(line: Line) -> bool:
    return isinstance(line.parsed, dict) and "kind" in line.parsed
