"""Finds the shards that paths name; one that cannot be read does not keep the others from it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.shard import (
    NoHeaderError,
    OtherVersionError,
    Shard,
    SharedRecordings,
    open_shard,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Paths: TypeAlias = "Iterable[str | os.PathLike[str]] | str | os.PathLike[str]"

_NAME = re.compile(r"(trace_.*\.(json|log)|proxy_log\.json)(\.gz)?", re.DOTALL)
_TOLD = 3  # reasons why there is no trace at all


def is_shard_name(name: str) -> bool:
    """Whether a file of this name, in a trace folder, should be a shard."""
    return _NAME.fullmatch(name) is not None


def as_paths(given: Paths) -> list[Path]:
    """Return paths, which may be given as text, and one by itself.

    Raises:
        TraceError: there are none.
    """
    paths = [given] if isinstance(given, str | os.PathLike) else given
    found = [Path(path) for path in paths]
    if not found:
        raise TraceError("no trace is given: name folders of shards, or shards")
    return found


@attrs.frozen
class Unread:
    """A file that should have been a shard, and was left out."""

    path: Path
    problem: str = ""  # as an error says it; empty: its process died before its header was there

    @property
    def loss(self) -> str:
        """Say what the run lacks by it."""
        return f"{self.path.name}: {'cannot be read' if self.problem else 'ends within its header'}"


@attrs.frozen
class Opened:
    """What paths name: shards, and files that are none."""

    shards: list[Shard] = attrs.field(factory=list)
    unread: list[Unread] = attrs.field(factory=list)


def open_shards(paths: Sequence[Path], *, is_strict: bool) -> Opened:
    """Open the shards in folders, and those that are named one by one.

    Raises:
        TraceError: there is none, or one is of a version that is not known; or one cannot be read
            that was named, or any, if `is_strict`.
    """
    opened, shared = Opened(), SharedRecordings()
    files = _files(paths)
    old: dict[Path, list[Path]] = {}  # what TrainCheck 0.x wrote, which belongs together by folder
    for path, is_named in files.items():
        found = _open(path, must_be_read=is_named or is_strict, is_strict=is_strict)
        if isinstance(found, Shard):
            opened.shards.append(shared.of(found))
        elif isinstance(found, Unread):
            opened.unread.append(found)
        else:
            old.setdefault(path.parent, []).append(path)
    for members in old.values():
        shards = _open_old(members)
        opened.shards.extend(shards)
        if not shards:
            opened.unread.extend(
                _of_no_process(path, must_be_read=files[path] or is_strict) for path in members
            )
    if not opened.shards:
        raise TraceError(_why_nothing(paths, opened.unread))
    return opened


def _open(path: Path, *, must_be_read: bool, is_strict: bool) -> Shard | Unread | None:
    """Open a shard; None if TrainCheck 0.x wrote it."""
    try:
        shard = open_shard(path, is_strict=is_strict)
    except TraceError as error:
        if isinstance(error, NoHeaderError) and is_legacy(path):
            return None
        if must_be_read or isinstance(error, OtherVersionError):
            raise
        return Unread(path, str(error))
    if shard is not None:
        return shard
    return None if is_legacy(path) else Unread(path)


def is_legacy(path: Path) -> bool:
    """Whether TrainCheck 0.x wrote a file."""
    # Most traces are of 1.0, and need none of what reads older ones.
    from traincheck_trace_schema.legacy.detection import is_legacy_file  # noqa: PLC0415

    return is_legacy_file(path)


def _open_old(paths: Sequence[Path]) -> list[Shard]:
    from traincheck_trace_schema.legacy import open_processes  # noqa: PLC0415  as above

    return open_processes(paths)


def _of_no_process(path: Path, *, must_be_read: bool) -> Unread:
    """Return an old file, in a folder of which none holds a record."""
    from traincheck_trace_schema.legacy import why_no_record  # noqa: PLC0415  as above

    problem = why_no_record(path)
    if problem and must_be_read:
        raise TraceError(problem)
    return Unread(path, problem)


def _files(paths: Sequence[Path]) -> dict[Path, bool]:
    """Return the files that may be shards, each once, and whether it was named itself."""
    found: dict[str, tuple[Path, bool]] = {}
    for path in paths:
        is_folder = path.is_dir()
        for member in _members(path) if is_folder else (path,):
            real = os.path.realpath(member)  # which, unlike Path.resolve, takes a loop of links
            known, is_named = found.get(real, (member, False))
            found[real] = known, is_named or not is_folder
    return dict(found.values())


def _members(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(filter(is_shard_name, (path.name for path in folder.iterdir())))
    except OSError as error:
        raise TraceError(f"{folder}: cannot be read: {error.strerror or error}") from error
    if not names:
        raise TraceError(
            f"{folder}: holds no trace; a trace is files named trace_*.json or trace_*.json.gz, "
            "written by traincheck-collect"
        )
    return (folder / name for name in names)


def _why_nothing(paths: Sequence[Path], unread: Sequence[Unread]) -> str:
    """Say why there is no trace: each reason of a few, and that a program ended too early."""
    problems = [each.problem for each in unread if each.problem]
    if not problems:
        return f"{listed(paths)}: has no records, the program ended before it wrote any"
    more = [f"and {len(problems) - _TOLD} more"] if len(problems) > _TOLD else []
    return "; ".join((*problems[:_TOLD], *more))


def listed(paths: Sequence[Path]) -> str:
    """Write paths as a message has them."""
    return ", ".join(map(str, paths))
