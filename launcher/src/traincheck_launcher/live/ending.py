"""What a run that was checked while it went on ends with: what is said, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_launcher.live.output import LiveOutput
from traincheck_trace_schema.errors import EXIT_VIOLATIONS, ConfigError
from traincheck_trace_schema.results_file import SUMMARY_NAME, read_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_instrument.gate.stopping import StopNote
    from traincheck_trace_schema.occasion import Place
    from traincheck_trace_schema.results import Violation


@attrs.frozen(kw_only=True)
class LiveEnding:
    """How program and check ended."""

    output: LiveOutput | None  # None: nothing was checked
    program: int  # the exit code
    check: int  # the same; negative: a signal has ended it

    @property
    def code(self) -> int:
        """The program's own, or that of the check if the program is content or was stopped."""
        if self._stop_note() is not None:
            return EXIT_VIOLATIONS
        return self.program or max(self.check, 0)

    def lines(self) -> Iterator[str]:
        """Yield what is to be said."""
        if self.check < 0:
            yield f"warning: the check was ended by signal {-self.check}; its results are not whole"
        note = self._stop_note()
        if note is None:
            return
        part = "" if note.before == "step" else f"in step {note.step}, before a {note.before}"
        broken = self._first_broken()
        why = "" if broken is None else f": {_told(broken)}"
        yield f"traincheck: the check stopped the program {part or f'before step {note.step}'}{why}"

    def _stop_note(self) -> StopNote | None:
        return None if self.output is None else self.output.stop_note()

    def _first_broken(self) -> Violation | None:
        """Return what was broken first, of what is not known to be."""
        if self.output is None:
            return None
        try:
            summary = read_summary(self.output.results / SUMMARY_NAME)
        except ConfigError:
            return None
        new = [each for each in summary.violations if not each.known]
        return min(new, key=lambda each: each.first.step, default=None)


def _told(violation: Violation) -> str:
    what = violation.happened or violation.text_description
    return f"{_when(violation.first)}, rank {violation.first.rank}: {what}"


def _when(place: Place) -> str:
    return "before the first step" if place.step < 0 else f"step {place.step}"
