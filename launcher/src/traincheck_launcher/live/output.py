"""Where a check leaves what it finds, in the output folder of the run that it follows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.gate.stopping import StopNote
from traincheck_instrument.settings import Guard
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.progress_file import PROGRESS_NAME

if TYPE_CHECKING:
    from traincheck_launcher.options import CollectOptions

_RESULTS = "check"


@attrs.frozen
class LiveOutput:
    """The files of a check that goes on beside the run."""

    traces: Path  # the output folder

    @property
    def results(self) -> Path:
        """The folder of results."""
        return self.traces / _RESULTS

    @property
    def progress(self) -> Path:
        """How far the check is."""
        return self.results / PROGRESS_NAME

    def begin(self) -> None:
        """Remove what an earlier run left that this one would take for its own.

        Raises:
            ConfigError: that is not possible.
        """
        try:
            self.progress.unlink(missing_ok=True)
            StopNote.remove(self.progress)
        except OSError as error:
            raise ConfigError(f"{self.results}: cannot be written: {error.strerror}") from error

    def guard(self, options: CollectOptions) -> Guard | None:
        """Return what the processes that train have to know of the check."""
        if not options.checks or options.on_violation != "stop":
            return None
        return Guard(progress=self.progress, lockstep=options.lockstep)

    def stop_note(self) -> StopNote | None:
        """Return where the run was stopped, if it was."""
        try:
            return StopNote.beside(self.progress)
        except ConfigError:  # it is there; that it can't be read changes little
            return StopNote(step=-1, before="step")
