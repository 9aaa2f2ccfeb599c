"""The command `traincheck-schema validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import TraincheckCommand, fail, say
from traincheck_trace_schema.errors import EXIT_CLEAN, EXIT_UNUSABLE, TraceError

if TYPE_CHECKING:
    from traincheck_trace_schema.validation import FileCheck

INVALID = 1  # the exit code; 2 is for what cannot be validated
_SHOWN = 20  # problems of a file


@click.command("validate", cls=TraincheckCommand)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option("-a", "--all", "is_all", is_flag=True, help="Show every problem.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Tell which files of a folder are none of ours."
)
def validate(paths: tuple[Path, ...], *, is_all: bool, verbose: bool) -> int:
    """Say what is valid and what is not, line by line.

    PATH is a file, or a folder of traces or results. Each line is held against the JSON Schema of
    its document, and against the rules between lines. The first problems of each file are shown.

    Exit codes: 0 all is valid, 1 something is not, 2 something cannot be validated.

    \b
    Examples:
      traincheck-schema validate trace_folder
      traincheck-schema validate invariants.json results_folder
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_trace_schema.validation import FileCheck, documents_in  # noqa: PLC0415  0.1 s

    code = EXIT_CLEAN
    for path, is_ours_if_it_says_so in documents_in(paths):
        check = FileCheck(path)
        try:
            problems = _told(check, None if is_all else _SHOWN, is_quiet=is_ours_if_it_says_so)
        except TraceError as error:
            fail(str(error))
            code = EXIT_UNUSABLE
            continue
        if check.document or not is_ours_if_it_says_so:
            say(_summed_up(check, problems))
            code = max(code, INVALID if problems else EXIT_CLEAN)
        elif verbose:
            say(f"{path}: passed over, it is no document of TrainCheck")
    return code


def _told(check: FileCheck, limit: int | None, *, is_quiet: bool) -> int:
    """Print the problems of a file, and return how many there are."""
    problems = check.problems()
    count = 0
    for count, problem in enumerate(problems, start=1):
        if is_quiet and not check.document:
            return count
        if limit is None or count <= limit:
            place = "" if problem.line is None else f":{problem.line}"
            say(f"{check.path}{place}: {problem.what}")
    if limit is not None and count > limit:
        say(f"{check.path}: {count - limit} more problems (--all shows them)")
    return count


def _summed_up(check: FileCheck, problems: int) -> str:
    words = [check.document] if check.document else []
    if check.is_lines:
        words.append(_number(check.records, "record" if check.document == "trace" else "line"))
    if problems:
        words.append(_number(problems, "problem"))
    words += check.notes
    return f"{check.path}: {'not valid' if problems else 'valid'}: {', '.join(words)}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
