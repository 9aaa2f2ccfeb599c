"""Tells files that TrainCheck 0.x wrote from traces of 1.0, by their first line."""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from typing import IO, TYPE_CHECKING, Any

from traincheck_trace_schema.codec import loads

if TYPE_CHECKING:
    from pathlib import Path

STATE = "state_change"
PRE = "function_call (pre)"
POST = "function_call (post)"
ERROR = "function_call (post) (exception)"
TYPES = frozenset((STATE, PRE, POST, ERROR))
PROXY_LOG = "proxy_log.json"

_HEAD = 2**18  # bytes in which the first line is looked for
_GZIP = b"\x1f\x8b"
# How a first line begins that is cut or very long; the first field of 1.0 is `kind`.
_BEGINNING = re.compile(rb'\s*\{\s*"(?:func_call_id|process_id|var_name)"\s*:')
_NAME = re.compile(r"trace_(?:API|VAR)_.*\.(?:log|json)(?:\.gz)?|proxy_log\.json(?:\.gz)?")


def is_legacy_file(path: Path) -> bool:
    """Whether a file is a trace that TrainCheck 0.x wrote; False for what can't be read.

    An empty file says nothing: its name decides.
    """
    head = _head(path)
    if head is None:
        return False
    line = head.lstrip().partition(b"\n")[0]
    if not line:
        return _NAME.fullmatch(path.name) is not None
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


def _head(path: Path) -> bytes | None:
    """Return the beginning of a regular file, decompressed; None if there is no reading it."""
    try:
        # Opening a FIFO would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            is_compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            if not is_compressed:
                return file.read(_HEAD)
            return _decompressed_head(file)
    except (OSError, ValueError):  # a path may hold a null byte
        return None


def _decompressed_head(file: IO[bytes]) -> bytes:
    """Return what the beginning of a compressed file gives, however little of it is whole."""
    head = b""
    try:
        with gzip.open(file) as text:
            while len(head) < _HEAD and (piece := text.read1(_HEAD)):
                head += piece
    except (EOFError, zlib.error, gzip.BadGzipFile):
        pass  # a file that was cut
    return head
