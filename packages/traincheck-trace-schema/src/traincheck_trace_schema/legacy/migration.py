"""Writes anew, as version 1.0, what TrainCheck 0.x wrote."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import ConfigError, TraincheckError
from traincheck_trace_schema.files import replacing
from traincheck_trace_schema.invariant_file import read_invariant_files, write_invariants
from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.legacy.old_invariant import is_old_invariant
from traincheck_trace_schema.legacy.process import open_processes
from traincheck_trace_schema.reading.findings import Findings
from traincheck_trace_schema.reading.lines import LineReader
from traincheck_trace_schema.writing import write_shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_trace_schema.reading.shard import Shard

_OURS = "traincheck."


@attrs.frozen
class Migration:
    """What was written, and what could not be."""

    written: tuple[Path, ...]
    notes: tuple[str, ...]


def migrate(source: Path, target: Path) -> Migration:
    """Write old traces and invariants anew: files of a folder under the same relative names.

    All is written or, if that fails, nothing.

    Args:
        source: A trace folder, a folder of such folders and of invariant files, a trace file or
            an invariant file.
        target: What is written: a folder, or for an invariant file a file. It must not exist.

    Raises:
        TraincheckError: `source` holds nothing old, or cannot be read; `target` exists, or cannot
            be written.
    """
    if os.path.lexists(target):
        raise ConfigError(f"{target}: is there already; choose another name for what is written")
    if source.is_dir():
        with _folder(target) as folder:
            written, notes = _migrate_folder(source, folder)
    elif is_legacy_file(source):
        with _folder(target) as folder:
            written, notes = _write_shards([source], folder)
    elif is_old_invariant(_first_line(source)):
        with replacing(target) as file:
            written, notes = _write_invariants(source, file)
        return Migration((target,), tuple(notes))
    else:
        raise ConfigError(f"{source}: {_why_nothing(_first_line(source))}")
    return Migration(tuple(target / path.relative_to(folder) for path in written), tuple(notes))


def _migrate_folder(source: Path, target: Path) -> tuple[list[Path], list[str]]:
    written: list[Path] = []
    notes: list[str] = []
    lines: list[Any] = []
    for place in (source, *sorted(path for path in source.iterdir() if path.is_dir())):
        folder = target / place.relative_to(source)
        members = sorted(path for path in place.iterdir() if path.is_file())
        traces = [path for path in members if is_legacy_file(path)]
        others = {path: _first_line(path) for path in members if path not in traces}
        lines += others.values()
        found: list[tuple[list[Path], list[str]]] = []
        if traces:
            folder.mkdir(exist_ok=True)
            found.append(_write_shards(traces, folder))
        for path, line in others.items():
            if is_old_invariant(line):
                folder.mkdir(exist_ok=True)
                found.append(_write_invariants(path, folder / path.name))
        for paths, said in found:
            written += paths
            notes += said
    if not written:
        ours = next((line for line in lines if _is_ours(line)), None)
        raise ConfigError(f"{source}: {_why_nothing(ours)}")
    return written, notes


def _write_shards(paths: Sequence[Path], folder: Path) -> tuple[list[Path], list[str]]:
    written: list[Path] = []
    notes: list[str] = []
    for number, process in enumerate(open_processes(paths)):
        findings = Findings(path=process.path)
        header = process.header
        path = folder / f"trace_r{header.rank}_p{header.pid}.json"
        write_shard(path, _records(process, number, findings))
        written.append(path)
        notes += findings.told()
    if not written:
        raise ConfigError(f"{paths[0].parent}: {_why_nothing(None)}")
    return written, notes


def _records(process: Shard, number: int, findings: Findings) -> Iterator[dict[str, Any]]:
    yield process.raw_header
    for item in process.read(number, findings):
        yield item.record


def _write_invariants(source: Path, target: Path) -> tuple[list[Path], list[str]]:
    files = read_invariant_files([source])
    if not files.invariants:
        raise ConfigError(f"{source}: no invariant can be expressed: {files.notes[0]}")
    write_invariants(target, files.invariants)
    return [target], list(files.notes)


def _first_line(path: Path) -> Any:
    """Return what the first line of a file says; None if it is no JSON or can't be read."""
    reader = LineReader(path)
    try:
        lines: list[bytes | None] | None = []
        while lines is not None and not lines:
            lines = reader.read()
        return loads((lines[0] if lines else reader.rest) or b"")
    except (TraincheckError, ValueError):
        return None
    finally:
        reader.close()


def _is_ours(line: Any) -> bool:
    return isinstance(line, dict) and str(line.get("schema")).startswith(_OURS)


def _why_nothing(line: Any) -> str:
    if _is_ours(line):
        return f"is of version {line.get('version')} already; there is nothing to migrate"
    return "holds nothing that TrainCheck 0.x wrote"


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
    finally:
        shutil.rmtree(folder, ignore_errors=True)
