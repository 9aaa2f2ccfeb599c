"""Files that hold documents: written at once or not at all, read with errors that say where."""

from __future__ import annotations

import contextlib
import os
from typing import IO, TYPE_CHECKING, Any

from traincheck_trace_schema.codec import dumps, loads, unstructure
from traincheck_trace_schema.errors import ConfigError, TraincheckError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SHOWN = 60  # characters of a line that is no JSON


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    Raises:
        ConfigError: it cannot be written.
    """
    with _replacing(path) as file:
        file.write(text)


def write_json(path: Path, document: object) -> None:
    """Write a document, indented for people."""
    write_atomically(path, dumps(unstructure(document), indent=2) + "\n")


def write_json_lines(path: Path, documents: Iterable[object]) -> None:
    """Write documents, one a line."""
    with _replacing(path) as file:
        file.writelines(f"{dumps(unstructure(document))}\n" for document in documents)


def read_json(path: Path, *, error: type[TraincheckError]) -> Any:
    """Return what a JSON file says.

    Raises:
        TraincheckError: of the class `error`, if it cannot be read or is no JSON.
    """
    with _reading(path, error) as file:
        return _parse(file.read(), str(path), error)


def read_json_lines(path: Path, *, error: type[TraincheckError]) -> Iterator[tuple[str, Any]]:
    """Yield what each line says, with its `path:line`; empty lines are passed over.

    Raises:
        TraincheckError: of the class `error`, if the file cannot be read or a line is no JSON.
    """
    with _reading(path, error) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                where = f"{path}:{number}"
                yield where, _parse(line, where, error)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[str]]:
    # Beside the target: a rename is atomic within one file system only. A device or pipe stays.
    is_special = path.exists() and not path.is_file()
    target = path if is_special else path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with target.open("w", encoding="utf-8") as file:
            yield file
        if not is_special:
            target.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if not is_special:
            with contextlib.suppress(OSError):
                target.unlink(missing_ok=True)


@contextlib.contextmanager
def _reading(path: Path, error: type[TraincheckError]) -> Iterator[IO[str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield file
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    except UnicodeDecodeError as problem:
        raise error(f"{path}: is no UTF-8 text") from problem


def _parse(text: str, where: str, error: type[TraincheckError]) -> Any:
    try:
        return loads(text)
    except ValueError as problem:
        raise error(f"{where}: is no JSON: {text.strip()[:_SHOWN]!r}") from problem
