"""Tells what is found while a run goes on: on the terminal, in the results, and to reporters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs

from traincheck_check.diagnosing.diagnosis import when
from traincheck_check.judging.following import Following
from traincheck_check.judging.outcome import outcome_of
from traincheck_check.judging.warnings import warnings_of
from traincheck_check.reporting.api import Report
from traincheck_check.reporting.registry import Sinks
from traincheck_trace_schema.cli import note, say
from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.results import Violation
from traincheck_trace_schema.results_file import SUMMARY_NAME

_LEAST_SECONDS = 0.2  # between two times that the results are written
_MOST_SECONDS = 0.7  # a violation is told within a second
_SHARE = 5  # so many times as long as writing takes is not written
_SHOWN = 8  # violations that are named at a time


@attrs.define(eq=False)
class Telling:
    """Tells the results of a run that goes on, when something new was found, and now and then."""

    _following: Following
    _folder: Path
    _sinks: Sinks
    _show: Callable[[Sequence[Violation], Path], None]
    _every: float  # seconds, where nothing new is found
    _clock: Callable[[], float] = time.monotonic
    _violations: int = 0  # as far as they were told
    _told: set[str] = attrs.field(factory=set)  # ids of invariants that are known to be broken
    _next: float = 0.0  # when it may be told again
    _due: float = 0.0  # when it is told, whether or not something was found

    def now_and_then(self) -> None:
        """Tell what is new, unless it was told a moment ago."""
        now = self._clock()
        is_news = self._following.violations != self._violations
        if now >= self._due or (is_news and now >= self._next):
            self.tell()

    def tell(self) -> Report:
        """Tell what was found so far."""
        begun = self._clock()
        self._violations = self._following.violations
        checked = self._following.checked()
        report = Report(
            name="",
            folder=self._folder,
            outcome=outcome_of(checked),
            warnings=tuple(warnings_of(checked)),
        )
        new = [
            each
            for each in report.outcome.summary.violations
            if each.invariant_id not in self._told
        ]
        self._told.update(each.invariant_id for each in new)
        report.outcome.write(self._folder)
        if new and checked.running:
            self._show(new, self._folder)
        self._sinks.update(report)
        ended = self._clock()
        pause = min(max(_SHARE * (ended - begun), _LEAST_SECONDS), _MOST_SECONDS)
        self._next, self._due = ended + pause, ended + self._every
        return report


def show_text(new: Sequence[Violation], folder: Path) -> None:
    """Print what was broken just now."""
    for each in new[:_SHOWN]:
        known = " (known)" if each.known else ""
        what = each.happened or f"Broken: {each.text_description}"
        say(f"{when(each.first)}, rank {each.first.rank}{known}: {what}")
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


@attrs.define
class Notes:
    """Tells on stderr what is to be noted, each once."""

    _told: set[str] = attrs.field(factory=set)

    def tell(self, texts: Iterable[str]) -> None:
        """Tell those that are new."""
        for text in texts:
            if text not in self._told:
                self._told.add(text)
                note(text)


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


_PULSE_SECONDS = 5.0
