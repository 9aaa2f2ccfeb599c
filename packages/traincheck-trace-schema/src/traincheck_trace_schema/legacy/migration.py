"""Writes anew, as version 1.0, what TrainCheck 0.x wrote."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.errors import ConfigError, InvariantError, TraceError, TraincheckError
from traincheck_trace_schema.invariant_file import (
    InvariantFiles,
    read_invariant_files,
    write_invariants,
)
from traincheck_trace_schema.legacy.contents import (
    Contents,
    contents_of,
    is_invariant_file,
    why_left,
)
from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.legacy.process import open_processes, why_no_record
from traincheck_trace_schema.reading.findings import Findings
from traincheck_trace_schema.writing import write_shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_trace_schema.reading.shard import Shard

_NOTHING = "holds nothing that TrainCheck 0.x wrote"


@attrs.frozen(kw_only=True)
class Migration:
    """What was written, and what could not be."""

    written: tuple[Path, ...]
    notes: tuple[str, ...]
    invariants: int = 0  # that were written
    saying_less: int = 0  # of them, those that ask for less than before
    left_out: int = 0  # invariants that can't be expressed
    files_left: int = 0  # files of TrainCheck's that were not carried over


def migrate(source: Path, target: Path) -> Migration:
    """Write old traces and invariants anew: those of a folder tree under the same relative names.

    A file in a folder that can't be migrated is left where it is and told. All else is written or,
    if that fails, nothing.

    Args:
        source: A trace file, an invariant file, or a folder: all in it and below it.
        target: What is written: a folder, or for an invariant file a file. It must not exist.

    Raises:
        TraincheckError: `source` holds nothing old, or cannot be read; `target` exists, or cannot
            be written.
    """
    if os.path.lexists(target):
        raise ConfigError(f"{target}: is there already; choose another name for what is written")
    work = _Work()
    if source.is_dir():
        _migrate_tree(source, target, work)
    elif is_legacy_file(source):
        with _folder(target) as folder:
            work.write_shards(_opened([source]), folder)
            work.rename(folder, target)
    elif is_invariant_file(source):
        work.write_invariants(_expressed(source), target)
    else:
        raise ConfigError(f"{source}: {_why_nothing(why_left(source))}")
    return work.done()


@attrs.define
class _Work:
    """What was done so far."""

    written: list[Path] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    invariants: int = 0
    saying_less: int = 0
    left_out: int = 0
    files_left: int = 0

    def write_shards(self, processes: Sequence[Shard], folder: Path) -> None:
        """Write the processes of a trace, a shard each."""
        for number, process in enumerate(processes):
            findings = Findings(path=process.path)
            header = process.header
            path = folder / f"trace_r{header.rank}_p{header.pid}.json"
            write_shard(path, _records(process, number, findings))
            self.written.append(path)
            self.notes += findings.told()

    def write_invariants(self, files: InvariantFiles, target: Path) -> None:
        """Write an invariant file."""
        write_invariants(target, files.invariants)
        self.written.append(target)
        self.notes += files.notes
        self.invariants += len(files.invariants)
        self.saying_less += files.saying_less
        self.left_out += files.left_out

    def leave(self, why: str) -> None:
        """Tell of a file of TrainCheck's that is not carried over."""
        self.notes.append(f"{why}; left where it is")
        self.files_left += 1

    def rename(self, folder: Path, target: Path) -> None:
        """Take the folder that was written for the one that it becomes."""
        self.written = [target / path.relative_to(folder) for path in self.written]

    def done(self) -> Migration:
        """Return what a user is told; of several processes, the same once."""
        told = {**attrs.asdict(self), "written": tuple(self.written)}
        return Migration(**{**told, "notes": tuple(dict.fromkeys(self.notes))})


def _migrate_tree(source: Path, target: Path, work: _Work) -> None:
    tree = list(contents_of(source))  # before the target is there, which may lie in it
    with _folder(target) as folder:
        for contents in tree:
            _migrate_folder(contents, folder / contents.folder.relative_to(source), work)
        if not work.written:
            raise ConfigError(_why_nothing_in(source, tree, work))
        work.rename(folder, target)


def _migrate_folder(contents: Contents, folder: Path, work: _Work) -> None:
    for why in contents.left:
        work.leave(why)
    try:
        processes = _opened(contents.traces)
    except TraceError as error:
        processes = []
        work.leave(str(error))
    if processes:
        folder.mkdir(parents=True, exist_ok=True)
        work.write_shards(processes, folder)
    for path in contents.invariants:
        try:
            files = _expressed(path)
        except InvariantError as error:
            work.leave(str(error))
            continue
        folder.mkdir(parents=True, exist_ok=True)
        work.write_invariants(files, folder / path.name)


def _opened(paths: Sequence[Path]) -> list[Shard]:
    """Open the files of one folder.

    Raises:
        TraceError: there is no record in them, or they can't be read.
    """
    processes = open_processes(paths)
    if paths and not processes:
        why = next(filter(None, map(why_no_record, paths)), f"{paths[0]}: has no records")
        raise TraceError(why)
    return processes


def _expressed(path: Path) -> InvariantFiles:
    """Read an invariant file.

    Raises:
        InvariantError: it can't be read, or nothing in it can be expressed.
    """
    files = read_invariant_files([path])
    if not files.invariants:
        raise InvariantError(f"{path}: no invariant can be expressed: {files.notes[0]}")
    return files


def _records(process: Shard, number: int, findings: Findings) -> Iterator[dict[str, Any]]:
    yield process.raw_header
    for item in process.read(number, findings):
        yield item.record


def _why_nothing(left: str) -> str:
    return f"{left}; there is nothing to migrate" if left else _NOTHING


def _why_nothing_in(source: Path, tree: Sequence[Contents], work: _Work) -> str:
    """Say why nothing of a tree could be migrated: the first reason of those that matter most."""
    if any(contents.traces or contents.invariants for contents in tree):
        left = {why for contents in tree for why in contents.left}
        tried = (note.removesuffix("; left where it is") for note in work.notes)
        return next(note for note in tried if note not in left)
    first = next((why for contents in tree for why in contents.left), "")
    return f"{first}; there is nothing to migrate" if first else f"{source}: {_NOTHING}"


@contextlib.contextmanager
def _folder(target: Path) -> Iterator[Path]:
    """Give a folder to write into, which gets its name when all is there."""
    folder = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        folder.mkdir()
        yield folder
        folder.rename(target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from error
    except TraincheckError as error:  # which names a file by where it was to be written
        raise type(error)(str(error).replace(str(folder), str(target))) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
