"""What a process leaves behind when its program fails, for the launcher to say who failed first.

Of the ranks of a job mostly one fails by itself; the others follow, or are ended by torchrun.
"""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAILURES = "failure_*.json"
_LONGEST = 300  # characters of a message


@attrs.frozen(kw_only=True)
class Failure:
    """How, when and where a program failed in one process."""

    rank: int
    world_size: int
    restart: int
    host: str
    pid: int
    step: int  # the training step last begun; -1 before the first
    wall_ns: int
    error: str  # its type and message, in one line
    traceback: tuple[str, ...]  # its lines

    @classmethod
    def of(cls, error: BaseException, *, header: dict[str, Any], step: int) -> Failure:
        """Describe an exception that ends the program.

        Args:
            error: The exception.
            header: What the trace says of the process.
            step: The training step last begun.
        """
        place = {name: header[name] for name in ("rank", "world_size", "restart", "host", "pid")}
        last = traceback.format_exception_only(error)[-1].strip()
        return cls(
            **place,
            step=step,
            wall_ns=time.time_ns(),
            error=" ".join(last.split())[:_LONGEST],
            traceback=tuple("".join(traceback.format_exception(error)).splitlines()),
        )

    def write(self, folder: Path) -> None:
        """Write it beside the traces."""
        write_json(folder / f"failure_r{self.rank}_p{os.getpid()}.json", self)


def read_failures(folder: Path) -> list[tuple[Path, Failure]]:
    """Return the failures that are told in a folder, the first one first."""
    return sorted(_readable(folder), key=lambda one: (one[1].wall_ns, one[1].rank))


def _readable(folder: Path) -> Iterator[tuple[Path, Failure]]:
    for path in folder.glob(FAILURES):
        with contextlib.suppress(ConfigError):  # it may have been written to a full disk
            document = read_json(path, error=ConfigError)
            yield path, structure(Failure, document, error=ConfigError)
