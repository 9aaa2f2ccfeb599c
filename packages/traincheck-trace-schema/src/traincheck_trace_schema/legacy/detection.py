"""Tells files that TrainCheck 0.x wrote from traces of 1.0, by their first line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.lines import LineReader

if TYPE_CHECKING:
    from pathlib import Path

STATE = "state_change"
PRE = "function_call (pre)"
POST = "function_call (post)"
ERROR = "function_call (post) (exception)"
TYPES = frozenset((STATE, PRE, POST, ERROR))
PROXY_LOG = "proxy_log.json"

_HEAD: Final = 2**18  # bytes in which the first line is looked for
_MOST_PIECES: Final = 10_000  # of a compressed file: there may be billions that are empty
# How a first line begins that is cut or very long; the first field of 1.0 is `kind`.
_BEGINNING = re.compile(rb'\s*\{\s*"(?:func_call_id|process_id|var_name)"\s*:')
_NAME = re.compile(r"trace_(?:API|VAR)_.*\.(?:log|json)(?:\.gz)?|proxy_log\.json(?:\.gz)?")


def is_legacy_file(path: Path) -> bool:
    """Whether a file is a trace that TrainCheck 0.x wrote; False for what can't be read.

    An empty file says nothing: its name decides.
    """
    line = first_line(path)
    if line is None:
        return False
    if not line:
        return has_legacy_name(path)
    try:
        return is_legacy_record(loads(line))
    except ValueError:
        return _BEGINNING.match(line) is not None


def is_legacy_record(record: Any) -> bool:
    """Whether a line is a record of 0.x: of a known type, of a process, and without a `kind`."""
    if not isinstance(record, dict) or "kind" in record or "process_id" not in record:
        return False
    kind = record.get("type")
    return isinstance(kind, str) and kind in TYPES


def has_legacy_name(path: Path) -> bool:
    """Whether 0.x named its traces so."""
    return _NAME.fullmatch(path.name) is not None


def first_line(path: Path, *, most: int = _HEAD) -> bytes | None:
    """Return the first line that is not empty, decompressed; None if there is no reading it.

    Args:
        path: The file; of one that is no regular file, there is no reading.
        most: Bytes to read, about; of a longer line it is the beginning.
    """
    reader = LineReader(path)
    try:
        for _ in range(_MOST_PIECES):
            if (lines := reader.read()) is None:
                break
            line = next((line for line in lines if line is None or line.strip()), b"")
            if line != b"":
                return line
            if reader.size > most:
                break
        return reader.rest.strip()
    except (TraceError, ValueError):  # a path may hold a null byte
        return None
    finally:
        reader.close()
