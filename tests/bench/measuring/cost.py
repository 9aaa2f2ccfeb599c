"""What a command takes of the processor and of memory."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@attrs.frozen
class Cost:
    """What a command took."""

    seconds: float  # of the processor
    megabytes: float


def run(argv: Sequence[str | Path], folder: Path, env: Mapping[str, str] | None = None) -> Cost:
    """Run a command and all that it starts, to its end."""
    log = folder / "output.txt"
    with log.open("wb") as output:
        pid = os.posix_spawn(
            argv[0],
            argv,
            {**os.environ, **(env or {})},
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)],
        )
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{argv[0]} failed:\n{log.read_text()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
