"""The command `traincheck-check`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from traincheck_check.commands.options import (
    GROUPS,
    CheckCommand,
    check_options,
    results_folder,
    threshold,
)
from traincheck_trace_schema.cli import given_traces, note, trace_options, warn

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
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(0),
    default=1,
    metavar="N",
    help="Runs that are checked at a time; 0: as many as there are cores.  [default: 1]",
)
@click.option(
    "--check-relation-first",
    is_flag=True,
    help="Accepted and without effect: all relations are checked in one pass.",
)
def check(**values: Any) -> int:
    """Check traces of training runs against invariants.

    What 'traincheck invariants suppress' suppressed beside the invariant files is not evaluated;
    how much that is, and why, is told.

    Exits with 0 if no invariant was broken, 1 if one was, 2 if the input is unusable, and 3 if no
    violation was found but the trace is incomplete, or too little of the invariants applied.
    """
    from traincheck_check.commands.printing import printer  # noqa: PLC0415  --help needs none
    from traincheck_check.commands.runs import check_runs  # noqa: PLC0415
    from traincheck_check.judging.claims import read_claims  # noqa: PLC0415
    from traincheck_check.judging.output_folder import opened_results  # noqa: PLC0415
    from traincheck_check.reporting.api import Report, Session  # noqa: PLC0415
    from traincheck_check.reporting.registry import Sinks  # noqa: PLC0415
    from traincheck_trace_schema.reading import open_runs  # noqa: PLC0415

    given = given_traces(values["trace_folders"], values["traces"])
    if values["check_relation_first"]:
        note("--check-relation-first has no effect: all relations are checked in one pass")
    claims = read_claims(
        values["invariants"],
        baseline=values["baseline"],
        with_suppressed=values["ignore_suppressions"],
    )
    for text in claims.notes:
        note(text)
    runs = open_runs(given, strict=values["strict"])
    show = printer(values["output_format"])
    limits = threshold(values)
    folder = results_folder(values["output_dir"], "checker")
    outcomes = []
    with opened_results(folder):
        session = Session(
            mode="finished",
            output_dir=folder,
            invariants={each.id: each for each in claims.invariants},
        )
        with closing(Sinks.started(values, session)) as sinks:
            results = zip(_names(runs), check_runs(runs, claims, values["jobs"]), strict=True)
            for name, result in results:
                result.outcome.write(folder / name)
                report = Report(
                    name=name,
                    folder=folder / name,
                    outcome=result.outcome,
                    warnings=result.warnings,
                )
                sinks.update(report)
                for text in result.notes:
                    note(text)
                for text in result.warnings:
                    warn(text)
                show(report, limits)
                outcomes.append(result.outcome)
    return limits.exit_code(outcomes)


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
