"""The command `traincheck-check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traincheck_check.commands.options import GROUPS, CheckCommand, check_options
from traincheck_trace_schema.cli import debug_option, given_traces, note, trace_options, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_trace_schema.reading import Run


_EXAMPLES = """\b
Examples:
  traincheck-check -f trace -i invariants.json
  traincheck-check -f run1 run2 -i invariants.json -j 2 --min-coverage 50
"""


@click.command("check", cls=CheckCommand, groups=GROUPS, no_args_is_help=True, epilog=_EXAMPLES)
@trace_options
@check_options
@debug_option
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(0),
    default=1,
    metavar="N",
    help="Runs that are checked at a time; 0: as many as there are cores.  [default: 1]",
)
def check(**values: Any) -> int:
    """Check traces of training runs against invariants.

    What 'traincheck invariants suppress' suppressed beside the invariant files is not evaluated;
    how much that is, and why, is told.

    Exits with 0 if no invariant was broken, 1 if one was, 2 if the input is unusable, and 3 if no
    violation was found but the trace is incomplete, or too little of the invariants applied.
    """
    from traincheck_check.commands.preparation import prepared  # noqa: PLC0415  --help needs none
    from traincheck_check.commands.runs import check_runs  # noqa: PLC0415
    from traincheck_check.reporting.api import Report  # noqa: PLC0415
    from traincheck_trace_schema.reading import open_runs  # noqa: PLC0415

    given = given_traces(values["trace_folders"], values["traces"])
    outcomes = []
    with prepared(values, "finished") as session:
        runs = open_runs(given, strict=values["strict"])
        results = check_runs(runs, session.claims, values["jobs"])
        for name, result in zip(_names(runs), results, strict=True):
            report = Report(
                name=name,
                folder=session.folder / name,
                outcome=result.outcome,
                warnings=result.warnings,
            )
            session.keep(report)
            for text in result.notes:
                note(text)
            for text in result.warnings:
                warn(text)
            session.show(report)
            outcomes.append(result.outcome)
        return session.end(outcomes)


def _names(runs: Sequence[Run]) -> Iterator[str]:
    """Yield where the results of each run go: of one run, into the results folder itself."""
    if len(runs) == 1:
        yield ""
        return
    taken: set[str] = set()
    for run in runs:
        folder = name = run.shards[0].path.resolve().parent.name or "run"
        number = 1
        while name in taken:  # not by the run id: a trace could name a folder anywhere
            number += 1
            name = f"{folder}-{number}"
        taken.add(name)
        yield name


def main() -> None:
    """Run the command."""
    check()
