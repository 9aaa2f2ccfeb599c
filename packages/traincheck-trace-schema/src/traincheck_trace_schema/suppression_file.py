"""Suppression files: JSON Lines, one suppression a line; they stand beside the invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import read_json_lines, write_json_lines
from traincheck_trace_schema.suppressions import SCHEMA, VERSION, Suppression
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Not .json: a shell's *.json would take the file for invariants.
_SUFFIX: Final = ".suppressed.jsonl"
_OF_INVARIANTS: Final = (".gz", ".json", ".jsonl")


def suppression_path(invariants: Path) -> Path:
    """Return where the suppressions of an invariant file stand.

    >>> from pathlib import Path
    >>> suppression_path(Path("runs/invariants.json")).name
    'invariants.suppressed.jsonl'
    """
    name = invariants.name
    for suffix in _OF_INVARIANTS:
        name = name.removesuffix(suffix) or name
    return invariants.with_name(f"{name}{_SUFFIX}")


def read_suppressions(path: Path) -> list[Suppression]:
    """Read a suppression file.

    Raises:
        ConfigError: it cannot be read, or a line is no suppression.
    """
    found = []
    for where, line in read_json_lines(path, error=ConfigError):
        check_version(line, schema=SCHEMA, known=VERSION, where=where, error=ConfigError)
        found.append(structure(Suppression, line, where=where, error=ConfigError))
    return found


def write_suppressions(path: Path, suppressions: Iterable[Suppression]) -> None:
    """Write a suppression file."""
    write_json_lines(path, suppressions)
