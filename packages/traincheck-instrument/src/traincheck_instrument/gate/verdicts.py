"""What the check has told so far, as the processes that train ask for it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.progress import JudgedProcess, Progress
from traincheck_trace_schema.progress_file import read_progress


@attrs.define(eq=False)
class Verdicts:
    """Reads the progress of a check again when it has changed, for the price of one `stat`."""

    path: Path
    run_id: str
    _clock: Callable[[], float] = time.monotonic
    _host: str = attrs.field(init=False, factory=socket.gethostname)
    _state: tuple[int, int] | None = attrs.field(init=False, default=None)
    _changed: float = attrs.field(init=False)  # when it was seen to change
    _progress: Progress | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._changed = self._clock()

    def look(self) -> bool:
        """See whether there is something new, and read it."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  half the price of Path.stat
        except OSError:
            return False
        state = found.st_ino, found.st_mtime_ns
        if state == self._state:
            return False
        try:
            progress = read_progress(self.path)
        except ConfigError:  # the disk is full, say: what was read before holds
            return False
        self._state, self._changed = state, self._clock()
        # What is left of another run, or of before this one has begun, says nothing of it.
        self._progress = progress if progress.run_id in {self.run_id, None} else None
        return True

    @property
    def fails(self) -> bool:
        """Whether what was found makes the check fail."""
        return self._progress is not None and self._progress.fails

    @property
    def silent_seconds(self) -> float:
        """How long the check has told nothing; it tells every second that it goes on."""
        return self._clock() - self._changed

    @property
    def has_ended(self) -> bool:
        """Whether the check is known to have ended: it says so, or its process is gone."""
        progress = self._progress
        if progress is None or not progress.running:
            return progress is not None
        return progress.host == self._host and not _is_alive(progress.pid)

    def of(self, shard: str) -> JudgedProcess | None:
        """Return how far a process was judged, by the name of its file."""
        processes = () if self._progress is None else self._progress.processes
        return next((each for each in processes if each.shard == shard), None)

    def waits_for_others(self, rank: int) -> bool:
        """Whether the verdict on this rank waits for what other ranks have to tell."""
        awaited = () if self._progress is None else self._progress.awaited
        return any(other != rank for other in awaited)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
