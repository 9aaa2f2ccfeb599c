"""Which files of a folder are documents of TrainCheck."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.results_file import FAILED_NAME, NOT_TRIGGERED_NAME, PASSED_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SHARDS = ("trace_*.json", "trace_*.json.gz", "trace_*.log", "trace_*.log.gz", "proxy_log.json")
_VERDICTS = (FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME)
_MAYBE = ("*.json", "*.json.gz")  # ours if they say so


def documents_in(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files to look at; the flag says whether one that is not ours is passed over.

    Raises:
        ConfigError: a path is not there, or a folder holds nothing of ours by name.
    """
    for path in paths:
        if not path.is_dir():
            if not path.exists():
                raise ConfigError(f"{path}: there is no such file or folder")
            yield path, False
            continue
        members = sorted(member for member in path.iterdir() if not member.is_dir())
        named = [member for member in members if is_named_as(member, *SHARDS, *_VERDICTS)]
        maybe = [m for m in members if is_named_as(m, *_MAYBE) and m not in named]
        if not named and not maybe:
            raise ConfigError(f"{path}: holds no document of TrainCheck")
        yield from ((member, member in maybe) for member in sorted(named + maybe))


def is_named_as(path: Path, *patterns: str) -> bool:
    """Whether a file's name is of one of the patterns."""
    return any(fnmatch.fnmatchcase(path.name, pattern) for pattern in patterns)
