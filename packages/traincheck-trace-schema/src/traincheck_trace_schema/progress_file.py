"""The file in which a check that follows a run tells how far it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traincheck_trace_schema.codec import dumps, loads, structure, unstructure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import write_atomically
from traincheck_trace_schema.progress import SCHEMA, VERSION, Progress
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from pathlib import Path

PROGRESS_NAME: Final = "progress.json"  # in a folder of results


def write_progress(path: Path, progress: Progress) -> None:
    """Replace the file.

    Raises:
        ConfigError: it cannot be written.
    """
    write_atomically(path, dumps(unstructure(progress)) + "\n")


def read_progress(path: Path) -> Progress:
    """Read the file, which is read many times a second: as it is, without a search for oddities.

    Raises:
        ConfigError: it cannot be read, or tells no progress.
    """
    try:
        document = loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is no JSON") from error
    check_version(document, schema=SCHEMA, known=VERSION, where=str(path), error=ConfigError)
    return structure(Progress, document, where=str(path), error=ConfigError)
