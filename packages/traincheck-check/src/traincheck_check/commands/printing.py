"""Prints the results of a run in the format that was asked for."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Literal, Protocol

import attrs

from traincheck_check.reporting.github import workflow_commands
from traincheck_check.reporting.screen import MAX_WIDTH, screen, wrapped
from traincheck_trace_schema.cli import say
from traincheck_trace_schema.codec import dumps, unstructure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincheck_check.judging.exit_code import Threshold
    from traincheck_check.reporting.api import Report

Format = Literal["text", "json", "github"]


class Printer(Protocol):
    """Prints the results of a run, of a check that fails from a threshold on."""

    def __call__(self, report: Report, limits: Threshold) -> None:
        """Print them."""


@attrs.define
class Voice:
    """Prints, until the reader is gone: what else is to be done goes on then."""

    _broken: BrokenPipeError | None = None

    def say(self, act: Callable[[], None]) -> None:
        """Let something print, if anybody reads it."""
        if self._broken is None:
            try:
                act()
            except BrokenPipeError as error:
                self._broken = error

    def end(self) -> None:
        """Say that not all was read, if so.

        Raises:
            BrokenPipeError: The reader went away.
        """
        if self._broken is not None:
            raise self._broken


def printer(output_format: Format) -> Printer:
    """Return what prints results in a format."""
    return _PRINTERS[output_format]


def print_text(report: Report, limits: Threshold) -> None:
    """Print what a person reads first."""
    lines = screen(report, limits)
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # it may be closed
    for line in wrapped(lines, width) if is_terminal else lines:
        say(line)


def _print_json(report: Report, limits: Threshold) -> None:
    del limits
    summary = unstructure(report.outcome.summary)
    document = {"run": report.name, "folder": str(report.folder), "summary": summary}
    say(dumps(document))


def _print_github(report: Report, limits: Threshold) -> None:
    for line in workflow_commands(report, limits):
        say(line)


_PRINTERS: Mapping[Format, Printer] = {
    "text": print_text,
    "json": _print_json,
    "github": _print_github,
}
