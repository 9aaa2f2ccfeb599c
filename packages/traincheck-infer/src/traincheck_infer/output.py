"""The invariant file that is written: what stands there already is never lost silently."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from traincheck_trace_schema.errors import ConfigError, InvariantError
from traincheck_trace_schema.invariant_file import read_invariant_files, write_invariants

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from traincheck_trace_schema.invariants import Invariant


def insist_on_writable(path: Path) -> None:
    """Refuse an output before the work, rather than after it.

    Raises:
        ConfigError: Its folder is missing or can't be written to, or a file stands there that holds
            no invariants.
    """
    if not path.parent.is_dir():
        raise ConfigError(f"{path}: its folder does not exist; make it, or choose another with -o")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{path}: its folder can't be written to; choose another with -o")
    if not path.is_file():
        return
    try:
        read_invariant_files([path])
    except InvariantError as error:
        raise ConfigError(
            f"{path} exists and holds no invariants, so it is not replaced; move it away, or "
            "choose another with -o"
        ) from error


def write_and_keep(path: Path, invariants: Iterable[Invariant]) -> Path | None:
    """Write invariants; if others stand there, keep them beside, and return where.

    Raises:
        ConfigError: It cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new{path.suffix}")
    if not path.is_file() or not path.stat().st_size:
        write_invariants(path, invariants)
        return None
    try:
        write_invariants(fresh, invariants)
        if fresh.read_bytes() == path.read_bytes():
            return None
        earlier = path.with_name(f"{path.name}.bak")
        path.replace(earlier)
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        fresh.unlink(missing_ok=True)
    return earlier
