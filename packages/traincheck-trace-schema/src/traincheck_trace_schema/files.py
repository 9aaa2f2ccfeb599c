"""Files that hold documents: written at once or not at all, read with errors that say where."""

from __future__ import annotations

import contextlib
import io
import os
from typing import IO, TYPE_CHECKING, Any

from traincheck_trace_schema.codec import dumps, loads, unstructure
from traincheck_trace_schema.errors import ConfigError, TraceError, TraincheckError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_MAX_DOCUMENT = 256 * 2**20  # bytes
_MAX_EMPTY = 1_000_000  # lines in a row
_LEVEL = 1  # of gzip: a tenth of the size; level 6 takes twice the time for a seventh less


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
    """Write documents, one a line: compressed if the file's name ends in `.gz`."""
    with replacing(path) as target, opened_text(target, is_gzip=path.suffix == ".gz") as file:
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


@contextlib.contextmanager
def opened_text(path: Path, *, is_gzip: bool) -> Iterator[IO[str]]:
    """Open a file to write text into, which is compressed on its way if asked for."""
    with path.open("wb") as file:
        if not is_gzip:
            with io.TextIOWrapper(file, "utf-8", newline="\n") as text:
                yield text
            return
        import gzip  # noqa: PLC0415  few need it

        # Without a name and a time, the same text gives the same file.
        with (
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed,
            io.TextIOWrapper(compressed, "utf-8", newline="\n") as text,
        ):
            yield text


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
    return _parse(b"\n".join(lines), str(path), error, lambda _: False)


def read_json_lines(
    path: Path,
    *,
    error: type[TraincheckError],
    is_lenient: Callable[[Any], bool] = lambda _: False,
) -> Iterator[tuple[str, Any]]:
    """Yield what each line says, with its `path:line`; empty lines are passed over.

    Args:
        path: The file.
        error: The class of errors.
        is_lenient: Of which lines `NaN`, numbers that overflow and duplicate keys are taken.

    Raises:
        TraincheckError: of the class `error`, if the file cannot be read or a line is no JSON,
            strictly.
    """
    empty = 0
    for where, line in _lines(path, error):
        if line.strip():
            empty = 0
            yield where, _parse(line, where, error, is_lenient)
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


def _parse(
    text: bytes, where: str, error: type[TraincheckError], is_lenient: Callable[[Any], bool]
) -> Any:
    from traincheck_trace_schema.reading.form import problem_of_text  # noqa: PLC0415  as above
    from traincheck_trace_schema.strict_json import problem_of, why_no_json, worded  # noqa: PLC0415

    try:
        text.decode()
        parsed = loads(text)
    except UnicodeDecodeError as problem:
        raise error(f"{where}: {worded(problem)}") from problem
    except ValueError as problem:
        raise error(f"{where}: {why_no_json(text)}") from problem
    wrong = problem_of_text(text, parsed)
    if wrong := wrong or ("" if is_lenient(parsed) else problem_of(text, parsed)):
        raise error(f"{where}: {wrong}")
    return parsed
