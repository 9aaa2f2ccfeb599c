"""What lies in a folder tree: old traces and invariants, and what of TrainCheck's is neither."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.legacy.detection import first_line, is_legacy_file
from traincheck_trace_schema.legacy.old_invariant import is_old_invariant
from traincheck_trace_schema.reading.lines import MAX_LINE
from traincheck_trace_schema.reading.opening import is_shard_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = 4096  # bytes of a file, by which it is known whose it is
_OURS = re.compile(rb'"schema"\s*:\s*"traincheck\.\w+"\s*,\s*"version"\s*:\s*"([0-9.]{1,20})"')
_RESULT = re.compile(rb'\s*\{\s*"(?:invariant|failed_reason)"\s*:')


@attrs.frozen
class Contents:
    """What lies in one folder."""

    folder: Path
    traces: list[Path] = attrs.field(factory=list)
    invariants: list[Path] = attrs.field(factory=list)
    left: list[str] = attrs.field(factory=list)  # of the rest: which file, and why


def contents_of(source: Path) -> Iterator[Contents]:
    """Yield what lies in a folder and in those below it, in order; links to folders are left."""
    unreadable: list[OSError] = []
    for place, folders, names in os.walk(source, onerror=unreadable.append):
        folders.sort()
        found = Contents(Path(place))
        for name in sorted(names):
            _sort(found.folder / name, found)
        links = [path for name in folders if (path := found.folder / name).is_symlink()]
        found.left.extend(f"{path}: is a link to a folder" for path in links)
        yield found
    for error in unreadable:
        why = f"{error.filename}: cannot be read: {error.strerror}"
        yield Contents(Path(error.filename), left=[why])


def is_invariant_file(path: Path) -> bool:
    """Whether the first line of a file is an invariant of 0.x."""
    try:
        return is_old_invariant(loads(first_line(path, most=MAX_LINE) or b""))
    except ValueError:
        return False


def why_left(path: Path) -> str:
    """Say why a file of TrainCheck's is not migrated; empty if it is none of its files."""
    line = first_line(path)
    # Of a document that is written for people, the first line is a bracket.
    head = line[:_HEAD] if line and line != b"{" else _beginning(path)
    if found := _OURS.search(head):
        return f"is of version {found[1].decode()} already"
    if _RESULT.match(head):
        return "is a result of TrainCheck 0.x, which version 1.0 does not have"
    return "is no trace that can be read" if is_shard_name(path.name) else ""


def _sort(path: Path, found: Contents) -> None:
    if is_legacy_file(path):
        found.traces.append(path)
    elif is_invariant_file(path):
        found.invariants.append(path)
    elif why := why_left(path):
        found.left.append(f"{path}: {why}")


def _beginning(path: Path) -> bytes:
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""
