"""Invariant files: JSON Lines, one invariant a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.files import read_json_lines, write_json_lines
from traincheck_trace_schema.invariant_id import invariant_id
from traincheck_trace_schema.invariants import SCHEMA, VERSION, Invariant
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from traincheck_trace_schema.legacy.invariants import OldLines

__all__ = [
    "InvariantFiles",
    "invariant_id",
    "read_invariant_files",
    "read_invariants",
    "write_invariants",
]


@attrs.frozen
class InvariantFiles:
    """What invariant files hold, and what of the old ones among them can't be expressed."""

    invariants: tuple[Invariant, ...]
    notes: tuple[str, ...] = ()
    left_out: int = 0  # invariants of 0.x that can't be expressed
    saying_less: int = 0  # and those that ask for less now


def read_invariants(paths: Sequence[Path]) -> list[Invariant]:
    """Read invariant files; an invariant that stands in them twice is returned once.

    Raises:
        InvariantError: a file or a line of it cannot be read.
    """
    return list(read_invariant_files(paths).invariants)


def read_invariant_files(paths: Sequence[Path]) -> InvariantFiles:
    """Read invariant files, of 1.0 and of TrainCheck 0.x, also mixed in one file.

    Raises:
        InvariantError: a file or a line of it cannot be read.
    """
    found: dict[str, Invariant] = {}
    old: dict[Path, OldLines] = {}
    for path in paths:
        for invariant in _read(path, old):
            found.setdefault(invariant.id, invariant)
    return InvariantFiles(
        tuple(found.values()),
        tuple(note for lines in old.values() for note in lines.told()),
        left_out=sum(lines.left_out for lines in old.values()),
        saying_less=sum(lines.saying_less for lines in old.values()),
    )


def write_invariants(path: Path, invariants: Iterable[Invariant]) -> None:
    """Write an invariant file."""
    write_json_lines(path, invariants)


def _read(path: Path, old: dict[Path, OldLines]) -> Iterator[Invariant]:
    for where, line in read_json_lines(path, error=InvariantError, is_lenient=_is_old):
        if _is_old(line):
            # Most files are of 1.0, and need none of what reads older ones.
            from traincheck_trace_schema.legacy.invariants import OldLines  # noqa: PLC0415

            lines = old.setdefault(path, OldLines(path))
            if (invariant := lines.take(line, where)) is not None:
                yield invariant
            continue
        check_version(line, schema=SCHEMA, known=VERSION, where=where, error=InvariantError)
        yield structure(Invariant, line, where=where, error=InvariantError)


def _is_old(line: Any) -> bool:
    """Whether a line is of TrainCheck 0.x, whose encoder wrote `NaN` and `Infinity` as such."""
    return isinstance(line, dict) and "schema" not in line and "relation" in line
