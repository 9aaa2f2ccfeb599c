"""Tells what is found while a run goes on: on the terminal, in the results, and to reporters."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from traincheck_check.commands.preparation import Preparation
from traincheck_check.judging.following import Following
from traincheck_check.judging.outcome import outcome_of
from traincheck_check.judging.warnings import warnings_of
from traincheck_check.reporting.api import Report
from traincheck_trace_schema.cli import note, say
from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.results import Violation
from traincheck_trace_schema.results_file import SUMMARY_NAME

_LEAST_SECONDS = 0.2  # between two times that the results are written
_MOST_SECONDS = 0.7  # a violation is told within a second
_SHARE = 5  # so many times as long as writing takes is not written
_SHOWN = 8  # violations that are named at a time
_PULSE_SECONDS = 5.0
_NUMBER = re.compile(r"\d+")
_NOBODY = (
    "nothing comes, and no process of the run was seen alive on this machine; if it has died, end "
    "with Ctrl-C, or use --exit-on-idle"
)


@attrs.define
class Pulse:
    """Tells on stderr, every few seconds, how far the run is, if asked for."""

    is_on: bool
    _clock: Callable[[], float] = time.monotonic
    _next: float = 0.0

    def beat(self, following: Following) -> None:
        """Tell it if it is time."""
        now = self._clock()
        if not self.is_on or now < self._next:
            return
        self._next = now + _PULSE_SECONDS
        ranks = following.checked().ranks
        steps = max((each.last for each in ranks if each.last is not None), default=None)
        far = "no step yet" if steps is None else f"step {steps}"
        silent = following.run.idle_seconds
        idle = f", silent for {silent:.0f} s" if silent > _PULSE_SECONDS else ""
        note(
            f"{far}, {len(ranks)} rank{'s' * (len(ranks) != 1)}, {following.records:,} records, "
            f"broken {following.violations:,} times{idle}"
        )


@attrs.define(eq=False)
class Telling:
    """Tells the results of a run that goes on, when something new was found, and now and then."""

    _following: Following
    _session: Preparation
    _show: Callable[[Sequence[Violation], Path], None]
    _every: float  # seconds, where nothing new is found
    _pulse: Pulse
    _clock: Callable[[], float] = time.monotonic
    _violations: int = 0  # as far as they were told
    _told: set[str] = attrs.field(factory=set)  # ids of invariants that are known to be broken
    _noted: set[str] = attrs.field(factory=set)
    _next: float = 0.0  # when it may be told again
    _due: float = 0.0  # when it is told, whether or not something was found
    _look: float = 0.0  # when it is looked for notes

    def now_and_then(self) -> None:
        """Tell what is new, unless it was told a moment ago."""
        now = self._clock()
        is_news = self._following.violations != self._violations
        if now >= self._due or (is_news and now >= self._next):
            self._try_to_tell()
        if now >= self._look:
            self._look = now + _MOST_SECONDS
            for text in self._following.run.notes():
                self._note(text)
            if self._following.is_nobody_there():
                self._note(_NOBODY)
            self._pulse.beat(self._following)

    def _try_to_tell(self) -> None:
        try:
            self.tell()
        except ConfigError as error:
            # The disk may have room again before the run is over.
            self._next = self._due = self._clock() + _MOST_SECONDS
            self._note(f"{error}; it is tried again while the run goes on")

    def tell(self) -> Report:
        """Tell what was found so far.

        Raises:
            ConfigError: The results can't be written.
        """
        begun = self._clock()
        self._violations = self._following.violations
        checked = self._following.checked()
        report = Report(
            name="",
            folder=self._session.folder,
            outcome=outcome_of(checked),
            warnings=tuple(warnings_of(checked)),
        )
        violations = report.outcome.summary.violations
        new = [each for each in violations if each.invariant_id not in self._told]
        self._told.update(each.invariant_id for each in new)
        if new and checked.running:
            self._session.voice.say(partial(self._show, new, report.folder))
        self._session.keep(report)
        ended = self._clock()
        pause = min(max(_SHARE * (ended - begun), _LEAST_SECONDS), _MOST_SECONDS)
        self._next, self._due = ended + pause, ended + self._every
        return report

    def tell_notes(self) -> None:
        """Tell all that is to be noted of the run, with the numbers that it has in the end."""
        for text in self._following.run.notes():
            if text not in self._noted:
                note(text)

    def _note(self, text: str) -> None:
        """Tell a note, unless it was told; that a number in it has grown is no news."""
        kind = _NUMBER.sub("#", text)
        if kind not in self._noted:
            self._noted |= {kind, text}
            note(text)


def show_text(new: Sequence[Violation], folder: Path) -> None:
    """Print what was broken just now."""
    for each in new[:_SHOWN]:
        known = " (known)" if each.known else ""
        what = each.happened or f"Broken: {each.text_description}"
        say(f"violation: {each.first.when}, rank {each.first.rank}{known}: {what}")
    if (more := len(new) - _SHOWN) > 0:
        say(f"and {more} more, see {folder / SUMMARY_NAME}")


def show_json(new: Sequence[Violation], folder: Path) -> None:
    """Print each violation as a document."""
    del folder
    for each in new:
        say(dumps({"violation": unstructure(each)}))


def show_nothing(new: Sequence[Violation], folder: Path) -> None:
    """Leave it to the end: annotations of a workflow are few."""
    del new, folder


SHOWN: Mapping[str, Callable[[Sequence[Violation], Path], None]] = {
    "text": show_text,
    "json": show_json,
    "github": show_nothing,
}
