"""How a run that the check stops ends: the exception, and the note that says where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import EXIT_VIOLATIONS, ConfigError
from traincheck_trace_schema.files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "stopped.json"  # beside the progress of the check


class StoppedByCheck(SystemExit):
    """Ends the program with exit code 1; what it does at its end is done."""

    def __init__(self) -> None:
        super().__init__(EXIT_VIOLATIONS)


@attrs.frozen(kw_only=True)
class StopNote:
    """Where the training was stopped first; a restart by torchrun stops again, at its begin."""

    step: int
    before: Literal["step", "micro-batch", "checkpoint"]  # the last two are parts of the step

    @classmethod
    def beside(cls, progress: Path) -> StopNote | None:
        """Read the note; None if the run was not stopped.

        Raises:
            ConfigError: it can't be read.
        """
        path = progress.with_name(_NAME)
        if not path.exists():
            return None
        document = read_json(path, error=ConfigError)
        return structure(cls, document, where=str(path), error=ConfigError)

    def write(self, progress: Path) -> None:
        """Write it beside the progress, unless another process of the run has."""
        path = progress.with_name(_NAME)
        if not path.exists():
            write_json(path, self)

    @staticmethod
    def remove(progress: Path) -> None:
        """Remove that of an earlier run."""
        progress.with_name(_NAME).unlink(missing_ok=True)
