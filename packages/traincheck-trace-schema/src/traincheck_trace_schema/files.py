"""Files that hold documents: written at once or not at all, read with errors that say where."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.codec import dumps, loads, unstructure
from traincheck_trace_schema.errors import ConfigError, TraceError, TraincheckError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SHOWN = 60  # characters of a line that is no JSON
_MAX_DOCUMENT = 256 * 2**20  # bytes
_MAX_EMPTY = 1_000_000  # lines in a row


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    Raises:
        ConfigError: it cannot be written.
    """
    with replacing(path) as target:
        target.write_text(text, encoding="utf-8")


def write_json(path: Path, document: object) -> None:
    """Write a document, indented for people."""
    write_atomically(path, dumps(unstructure(document), indent=2) + "\n")


def write_json_lines(path: Path, documents: Iterable[object]) -> None:
    """Write documents, one a line."""
    with replacing(path) as target, target.open("w", encoding="utf-8") as file:
        file.writelines(f"{dumps(unstructure(document))}\n" for document in documents)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write, which takes the place of `path` when all of it is there.

    Raises:
        ConfigError: it cannot be written.
    """
    # Beside the target: a rename is atomic within one file system only. A device or pipe stays.
    is_special = path.exists() and not path.is_file()
    target = path if is_special else path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield target
        if not is_special:
            target.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if not is_special:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)


def read_json(path: Path, *, error: type[TraincheckError]) -> Any:
    """Return what a JSON file says.

    Raises:
        TraincheckError: of the class `error`, if it cannot be read or is no JSON, strictly.
    """
    lines = []
    size = 0
    for _, line in _lines(path, error):
        size += len(line)
        if size > _MAX_DOCUMENT:
            raise error(f"{path}: is longer than {_MAX_DOCUMENT >> 20} MB")
        lines.append(line)
    return _parse(b"\n".join(lines), str(path), error)


def read_json_lines(path: Path, *, error: type[TraincheckError]) -> Iterator[tuple[str, Any]]:
    """Yield what each line says, with its `path:line`; empty lines are passed over.

    Raises:
        TraincheckError: of the class `error`, if the file cannot be read or a line is no JSON,
            strictly.
    """
    empty = 0
    for where, line in _lines(path, error):
        if line.strip():
            empty = 0
            yield where, _parse(line, where, error)
        else:
            empty += 1
            if empty > _MAX_EMPTY:  # compressed, a small file may hold billions
                raise error(f"{where}: has more than {_MAX_EMPTY} empty lines before it")


def _lines(path: Path, error: type[TraincheckError]) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file, which may be compressed, and where each stands."""
    # Those who only write need none of what reads.
    from traincheck_trace_schema.reading.lines import MAX_LINE, LineReader  # noqa: PLC0415

    number = 0
    with contextlib.closing(LineReader(path)) as reader:
        try:
            while (lines := reader.read()) is not None:
                for line in lines:
                    number += 1
                    if line is None:
                        raise error(f"{path}:{number}: is longer than {MAX_LINE >> 20} MB")
                    yield f"{path}:{number}", line
        except TraceError as problem:
            raise error(str(problem)) from problem
        if reader.problem:
            raise error(f"{path}: {reader.problem}")
        if reader.is_skipping:
            raise error(f"{path}:{number + 1}: is longer than {MAX_LINE >> 20} MB")
        if reader.rest:
            yield f"{path}:{number + 1}", reader.rest


def _parse(text: bytes, where: str, error: type[TraincheckError]) -> Any:
    from traincheck_trace_schema.reading.form import problem_of_text  # noqa: PLC0415  as above
    from traincheck_trace_schema.strict_json import problem_of  # noqa: PLC0415  as above

    try:
        text.decode()
        parsed = loads(text)
    except UnicodeDecodeError as problem:
        raise error(f"{where}: is no UTF-8 text") from problem
    except ValueError as problem:
        shown = text[: 4 * _SHOWN].decode(errors="replace").strip()[:_SHOWN]
        raise error(f"{where}: is no JSON: {shown!r}") from problem
    if wrong := problem_of_text(text, parsed) or problem_of(text, parsed):
        raise error(f"{where}: {wrong}")
    return parsed
