"""Writes shards: for programs that produce traces, for migration and for tests.

The recorder inside a training process has a writer of its own, which never waits for the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import ConfigError, TraceError
from traincheck_trace_schema.files import opened_text, replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from traincheck_trace_schema.records import TraceRecord


def write_shard(
    path: Path, records: Iterable[Mapping[str, Any] | TraceRecord], *, overwrite: bool = False
) -> None:
    """Write the shard of one process: compressed if its name ends in `.gz`.

    The records, dictionaries as they stand in the trace or objects of `records`, are written as
    they come. Dictionaries are not checked: `traincheck-schema validate` does so afterwards, or
    `validation.validate("trace", record)` one by one. A reader sees the whole file or none.

    Args:
        path: The file; name it `trace_*.json` or `trace_*.json.gz`.
        records: A header first, a footer last.
        overwrite: Take the place of a file that is there.

    Raises:
        ConfigError: The file is there, or cannot be written.
        TraceError: A record holds what JSON lacks.
    """
    if not overwrite and path.is_file():
        raise ConfigError(f"{path}: is there already; remove it, or write with overwrite=True")
    with replacing(path) as target, opened_text(target, is_gzip=path.suffix == ".gz") as file:
        for number, record in enumerate(records, start=1):
            file.write(_line(record, f"{path}:{number}"))


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
