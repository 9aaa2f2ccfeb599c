"""The folder of results: made, and held by one checker at a time."""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

from traincheck_trace_schema.cli import note
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.results_file import (
    FAILED_NAME,
    NOT_TRIGGERED_NAME,
    PASSED_NAME,
    REPORT_NAME,
    SUMMARY_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCK_NAME = ".lock"
# The summary last: as long as it stands, it is known that they are of an earlier check.
_NAMES = (FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME, REPORT_NAME, SUMMARY_NAME)


@contextlib.contextmanager
def opened_results(folder: Path) -> Iterator[None]:
    """Make a folder of results if need be, and hold it; former results in it may be replaced.

    Raises:
        ConfigError: It can't be made or written to, or another checker holds it.
    """
    is_new = not folder.exists()
    make_folder(folder)
    lock = folder / _LOCK_NAME
    try:
        file = lock.open("a")
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be written to: {error.strerror or error}; choose another with -o"
        ) from error
    with file:
        try:
            # The system frees it when the process ends, however it does.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(
                f"{folder}: another checker writes its results there; choose another with -o"
            ) from error
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # it may have been removed by somebody else
                lock.unlink(missing_ok=True)
                if is_new and not any(folder.iterdir()):
                    folder.rmdir()


def remove_former(folder: Path) -> None:
    """Remove the results of an earlier check, before the first of another are written."""
    if not (folder / SUMMARY_NAME).exists():
        return
    note(f"{folder} had results of an earlier check, which are replaced")
    for name in _NAMES:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder.

    Raises:
        ConfigError: It can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder}: cannot be made: {error.strerror or error}; choose another with -o"
        ) from error
