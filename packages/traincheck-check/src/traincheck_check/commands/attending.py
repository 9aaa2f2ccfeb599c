"""Follows a run: looks, tells, waits, until it is over or somebody asks for the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_check.commands.announcing import Announcing
from traincheck_check.commands.end_of_input import EndOfInput
from traincheck_check.commands.interruption import Interruption
from traincheck_check.commands.telling import Telling
from traincheck_trace_schema.cli import note
from traincheck_trace_schema.errors import TraceError

if TYPE_CHECKING:
    from traincheck_check.judging.following import Following

_LONGEST_SECONDS = 0.1  # between two looks
_PART = 0.05  # of a silence, after which it is looked again
_WAITING_SECONDS = 2.0  # after which it is told that there is nothing yet


@attrs.frozen(kw_only=True)
class Attending:
    """Who is told while a run is followed, and who may ask for the end."""

    telling: Telling
    announcing: Announcing
    interruption: Interruption
    end_of_input: EndOfInput | None
    poll_seconds: float

    def follow(self, following: Following) -> None:
        """Judge and tell until the run is over, or somebody asks for the end.

        Raises:
            TraceError: There was no trace, or it can't be followed.
        """
        paths = ", ".join(map(str, following.paths))
        is_awaited = False
        while not self.interruption.is_asked_for:
            # Asked before the look: what was written before the end is judged.
            is_last = self.end_of_input is not None and self.end_of_input.has_come
            if not self._look(following):
                return
            if is_last:
                break
            silent = following.run.idle_seconds
            # Who says when the run is over knows of restarts, and of programs that begin late.
            if self.end_of_input is None:
                if not (following.run.shards or is_awaited) and silent > _WAITING_SECONDS:
                    is_awaited = True
                    note(f"waiting for a trace in {paths}")
                if (why := following.why_over()) is not None:
                    if why:
                        note(f"{why}; what was read is checked")
                    break
            self._wait(silent)
        else:
            note("asked to end; what was read so far is checked")
        following.finish()
        if not following.run.shards:
            raise TraceError(f"{paths}: no trace came")

    def _look(self, following: Following) -> bool:
        """Judge what is there; return whether all of it was."""
        for _ in following.advance():
            self._tell(following)
            if self.interruption.is_asked_for:
                note("asked to end; what was read so far is checked")
                following.stop("the check was asked to end before it had read all that is there")
                return False
        self._tell(following)
        return True

    def _tell(self, following: Following) -> None:
        """Tell what is new; those that wait for the verdict first."""
        self.announcing.announce()
        if following.run.shards:
            self.telling.now_and_then()

    def _wait(self, silent_seconds: float) -> None:
        """Wait before the next look: the longer, the longer nothing has come."""
        most = max(self.poll_seconds, _LONGEST_SECONDS)
        self.interruption.wait(min(max(self.poll_seconds, _PART * silent_seconds), most))
