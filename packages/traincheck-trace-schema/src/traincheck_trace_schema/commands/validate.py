"""The command `traincheck-schema validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import TraincheckCommand
from traincheck_trace_schema.errors import EXIT_CLEAN, EXIT_UNUSABLE, TraceError

if TYPE_CHECKING:
    from traincheck_trace_schema.commands.validation_report import Report
    from traincheck_trace_schema.validation import RunRules

INVALID = 1  # the exit code; 2 is for what cannot be validated


@click.command("validate", cls=TraincheckCommand)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option("-a", "--all", "is_all", is_flag=True, help="Show every problem and every hint.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Tell which files of a folder are none of ours."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print all that is found as JSON Lines: path, line, severity, what.",
)
def validate(paths: tuple[Path, ...], *, is_all: bool, verbose: bool, as_json: bool) -> int:
    """Say what is valid and what is not, line by line.

    PATH is a file, or a folder, with its subfolders. Each line is held against the JSON Schema of
    its document, against the rules between lines and, of a trace, between the shards of a run. A
    hint tells of what is legal and probably a mistake. The first findings of each file are shown.

    Exit codes: 0 all is valid, 1 something is not, 2 something cannot be validated.

    \b
    Examples:
      traincheck-schema validate trace_folder
      traincheck-schema validate invariants.json results_folder
      traincheck-schema validate --json trace_folder
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_trace_schema.commands.validation_report import JsonReport, Report  # noqa: PLC0415
    from traincheck_trace_schema.validation import RunRules, documents_in  # noqa: PLC0415  0.1 s

    report, runs = JsonReport() if as_json else Report(is_all=is_all), RunRules()
    code = EXIT_CLEAN
    for path, is_ours_if_it_says_so in documents_in(paths):
        try:
            found = _validate(path, runs, report, is_quiet=is_ours_if_it_says_so)
        except TraceError as error:
            report.error(path, str(error))
            code = EXIT_UNUSABLE
            continue
        if found is not None:
            code = max(code, found)
        elif verbose:
            report.note(path, "passed over, it is no document of TrainCheck")
    for folder, what in runs.notes():
        report.note(folder, what)
    return code


def _validate(path: Path, runs: RunRules, report: Report, *, is_quiet: bool) -> int | None:
    """Tell what is wrong with a file; return its exit code, None if it is passed over."""
    from traincheck_trace_schema.validation import FileCheck  # noqa: PLC0415  as above

    check, code = FileCheck(path), EXIT_CLEAN
    for finding in check.findings():
        if is_quiet and not check.document:
            return None
        report.finding(path, finding)
        code = max(code, INVALID if finding.severity == "problem" else EXIT_CLEAN)
    if is_quiet and not check.document:
        return None
    for finding in runs.take(check.shard) if check.shard else ():
        report.finding(path, finding)
        code = INVALID
    report.file(check)
    return code
