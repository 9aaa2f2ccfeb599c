"""Writes shards: for programs that produce traces, for migration and for tests.

The recorder inside a training process has a writer of its own, which never waits for the disk.
"""

from __future__ import annotations

import contextlib
import gzip
import io
from typing import IO, TYPE_CHECKING, Any

from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from traincheck_trace_schema.records import TraceRecord

_LEVEL = 1  # of gzip: a tenth of the size; level 6 takes twice the time for a seventh less


def write_shard(path: Path, records: Iterable[Mapping[str, Any] | TraceRecord]) -> None:
    """Write the shard of one process: compressed if its name ends in `.gz`.

    The records, dictionaries as they stand in the trace or objects of `records`, are written as
    they come, and are not validated. A reader sees the whole file or none.

    Args:
        path: The file; name it `trace_*.json` or `trace_*.json.gz`.
        records: A header first, a footer last.

    Raises:
        ConfigError: The file cannot be written.
        TraceError: A record holds what JSON lacks.
    """
    with replacing(path) as target, _opened(target, is_gzip=path.suffix == ".gz") as file:
        for number, record in enumerate(records, start=1):
            file.write(_line(record, f"{path}:{number}"))


@contextlib.contextmanager
def _opened(path: Path, *, is_gzip: bool) -> Iterator[IO[str]]:
    with path.open("wb") as file:
        if not is_gzip:
            with io.TextIOWrapper(file, "utf-8", newline="\n") as text:
                yield text
            return
        # Without a name and a time, the same records give the same file.
        with (
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed,
            io.TextIOWrapper(compressed, "utf-8", newline="\n") as text,
        ):
            yield text


def _line(record: Mapping[str, Any] | TraceRecord, where: str) -> str:
    raw = record if isinstance(record, dict) else unstructure(record)
    try:
        return f"{dumps(raw)}\n"
    except OverflowError as error:
        raise TraceError(
            f'{where}: cannot be written: a number is not finite; write {{"float": "nan"}} instead'
        ) from error
    except (TypeError, ValueError) as error:
        raise TraceError(f"{where}: cannot be written: {error}") from error
