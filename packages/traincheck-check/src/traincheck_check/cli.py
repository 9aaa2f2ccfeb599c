"""The command `traincheck-check`. What it does is imported when it runs."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import (
    ManyValues,
    TraincheckCommand,
    given_traces,
    note,
    say,
    trace_options,
    warn,
)
from traincheck_trace_schema.errors import (
    EXIT_CLEAN,
    EXIT_INCOMPLETE,
    EXIT_VIOLATIONS,
    InvariantError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traincheck_check.checking import Checked
    from traincheck_check.outcome import Outcome
    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.reading import Run
    from traincheck_trace_schema.results import Suppressed


@click.command("check", cls=TraincheckCommand)
@trace_options
@click.option(
    "-i",
    "--invariants",
    cls=ManyValues,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Invariant files that traincheck-infer wrote.",
)
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the results.  [default: traincheck_checker_results_TIME]",
)
@click.option(
    "--ignore-suppressions",
    is_flag=True,
    help="Check also what is suppressed beside the invariant files.",
)
def check(  # noqa: PLR0913  one for each option
    trace_folders: tuple[Path, ...],
    traces: tuple[Path, ...],
    *,
    strict: bool,
    invariants: tuple[Path, ...],
    output_dir: Path | None,
    ignore_suppressions: bool,
) -> int:
    """Check traces of training runs against invariants.

    What 'traincheck invariants suppress' suppressed beside the invariant files is not evaluated;
    how much that is, and why, is told.

    Exits with 0 if no invariant was broken, 1 if one was, 2 if the input is unusable, and 3 if the
    trace is incomplete and shows no violation.
    """
    from traincheck_check.checking import check_run  # noqa: PLC0415  --help does not need it
    from traincheck_check.outcome import outcome_of  # noqa: PLC0415
    from traincheck_check.terminal import MAX_WIDTH, screen, wrapped  # noqa: PLC0415
    from traincheck_relations.registry import not_checkable, relations_for  # noqa: PLC0415
    from traincheck_trace_schema.reading import open_runs  # noqa: PLC0415

    given = given_traces(trace_folders, traces)
    claims, suppressed = _read(invariants, ignore_suppressions=ignore_suppressions)
    loaded = relations_for(claims)
    relations = loaded.relations
    unchecked = not_checkable(claims, relations, loaded.faults)
    results = output_dir or Path(
        f"traincheck_checker_results_{datetime.now().astimezone():%Y%m%d_%H%M%S}"
    )
    runs = open_runs(given, strict=strict)
    outcomes = []
    for run, name in zip(runs, _names(runs), strict=True):
        checked = check_run(run, claims, relations, unchecked)
        outcome = outcome_of(checked, suppressed)
        outcome.write(results / name)
        _warn(checked, relations)
        lines = screen(outcome.summary, results / name, name=name or None)
        for line in wrapped(lines, _width(MAX_WIDTH)) if sys.stdout.isatty() else lines:
            say(line)
        outcomes.append(outcome)
    return _exit_code(outcomes)


def _read(
    paths: Sequence[Path], *, ignore_suppressions: bool
) -> tuple[Sequence[Invariant], Sequence[Suppressed]]:
    """Return the invariants that are to be checked, and those that are not, with the reasons."""
    from traincheck_check.suppressed import without_suppressed  # noqa: PLC0415  see `check`
    from traincheck_relations.suppression import suppressions_beside  # noqa: PLC0415
    from traincheck_trace_schema.invariant_file import read_invariant_files  # noqa: PLC0415

    files = read_invariant_files(paths)
    for text in files.notes:
        note(text)
    suppressions = () if ignore_suppressions else suppressions_beside(paths)
    claims, suppressed = without_suppressed(files.invariants, suppressions)
    if claims:
        return claims, suppressed
    why = (
        "every invariant is suppressed; check them all with --ignore-suppressions"
        if suppressed
        else "has no invariant to check; infer from longer or more runs"
    )
    raise InvariantError(f"{', '.join(map(str, paths))}: {why}")


def _width(most: int) -> int:
    return min(shutil.get_terminal_size().columns, most)


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


def _warn(checked: Checked, relations: Mapping[str, Relation]) -> None:
    for text in checked.run.notes():
        note(text)
    for message in _warnings(checked, relations):
        warn(message)


def _warnings(checked: Checked, relations: Mapping[str, Relation]) -> Iterator[str]:
    from traincheck_check.other_trackers import other_trackers  # noqa: PLC0415  see `check`

    for reason, count in Counter(checked.unchecked.values()).items():
        yield f"not checked: {count} invariant{'s' if count > 1 else ''}: {reason}"
    if not checked.seen.steps:
        yield (
            "no training step is recorded in this trace, so little can be checked; collect again "
            "from a script whose training loop is found, or mark its steps by hand"
        )
    used = {shard.header.tracker for shard in checked.run.shards}
    claims = [
        finding.invariant
        for finding in checked.findings
        if finding.invariant.id not in checked.unchecked
    ]
    if learnt := other_trackers(claims, relations, used):
        yield (
            f"invariants were inferred with tracker {_named(learnt)}, this trace was collected "
            f"with {_named(used)}; what only one of them sees may be told wrongly, collect with "
            "the same"
        )


def _named(trackers: Iterable[str | None]) -> str:
    return ", ".join(sorted(tracker or "none" for tracker in trackers))


def _exit_code(outcomes: Iterable[Outcome]) -> int:
    summaries = [outcome.summary for outcome in outcomes]
    if any(summary.failed for summary in summaries):
        return EXIT_VIOLATIONS
    if any(not summary.complete for summary in summaries):
        return EXIT_INCOMPLETE
    return EXIT_CLEAN


def main() -> None:
    """Run the command."""
    check()
