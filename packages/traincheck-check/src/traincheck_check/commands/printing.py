"""Prints the results of a run in the format that was asked for."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Literal, Protocol

from traincheck_check.reporting.github import workflow_commands
from traincheck_check.reporting.screen import MAX_WIDTH, screen, wrapped
from traincheck_trace_schema.cli import say
from traincheck_trace_schema.codec import dumps, unstructure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_check.judging.exit_code import Threshold
    from traincheck_check.reporting.api import Report

Format = Literal["text", "json", "github"]


class Printer(Protocol):
    """Prints the results of a run, of a check that fails from a threshold on."""

    def __call__(self, report: Report, limits: Threshold) -> None:
        """Print them."""


def printer(output_format: Format) -> Printer:
    """Return what prints results in a format."""
    return _PRINTERS[output_format]


def print_text(report: Report, limits: Threshold) -> None:
    """Print what a person reads first."""
    lines = screen(report, limits)
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    for line in wrapped(lines, width) if sys.stdout.isatty() else lines:
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
