"""Which files of a folder are documents of TrainCheck."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import TYPE_CHECKING

from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.records import SHARD_NAMES
from traincheck_trace_schema.results_file import FAILED_NAME, NOT_TRIGGERED_NAME, PASSED_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHARDS = (*SHARD_NAMES, "trace_*.log", "trace_*.log.gz", "proxy_log.json")
_VERDICTS = (FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME)
_MAYBE = ("*.json", "*.json.gz", "*.jsonl", "*.jsonl.gz")  # ours if they say so
NAMES = (
    "traces are named trace_*.json or trace_*.json.gz, verdicts *.log as traincheck-check names "
    "them, other documents *.json"
)


def documents_in(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files to look at, in folders those of their subfolders too.

    The flag says whether one that is not ours is passed over. Links to folders are not followed.

    Raises:
        ConfigError: a path is not there, or a folder holds nothing of ours by name.
    """
    for path in paths:
        if not path.is_dir():
            if not path.exists():
                raise ConfigError(f"{path}: there is no such file or folder")
            yield path, False
            continue
        is_empty = True
        for member in _files_below(path):
            is_ours = is_named_as(member, *SHARDS, *_VERDICTS)
            if is_ours or is_named_as(member, *_MAYBE):
                is_empty = False
                yield member, not is_ours
        if is_empty:
            raise ConfigError(f"{path}: holds no document of TrainCheck; {NAMES}")


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, sorted, then those of its subfolders."""

    def refuse(error: OSError) -> None:
        raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from error

    for place, subfolders, names in os.walk(folder, onerror=refuse):
        subfolders.sort()
        yield from (Path(place, name) for name in sorted(names))


def is_named_as(path: Path, *patterns: str) -> bool:
    """Whether a file's name is of one of the patterns."""
    return any(fnmatch.fnmatchcase(path.name, pattern) for pattern in patterns)
