"""What the commands that check do before they read a trace, and after."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from traincheck_check.commands.printing import Printer, print_text, printer
from traincheck_check.judging.baseline import write_baseline
from traincheck_check.judging.claims import Claims, read_claims
from traincheck_check.judging.exit_code import Threshold
from traincheck_check.judging.output_folder import opened_results
from traincheck_check.reporting.api import Session
from traincheck_check.reporting.registry import Sinks
from traincheck_trace_schema.cli import note, say
from traincheck_trace_schema.results_file import REPORT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_check.judging.outcome import Outcome


@attrs.frozen(kw_only=True)
class Preparation:
    """What is checked against, and where it is told."""

    claims: Claims
    folder: Path  # of the results
    sinks: Sinks
    show: Printer
    limits: Threshold
    baseline: Path | None  # to be written

    def tell_report(self) -> None:
        """Say where the report is, to a person, if it was written."""
        report = self.folder / REPORT_NAME
        if self.show is print_text and report.exists():
            say(f"The report is {report}")

    def exit_code(self, outcomes: Sequence[Outcome]) -> int:
        """Return the exit code of what was found; if asked for, keep that as a baseline."""
        if self.baseline is not None:
            write_baseline(self.baseline, outcomes, self.claims.known)
        return self.limits.exit_code(outcomes)


@contextmanager
def prepared(values: Mapping[str, Any], mode: Literal["finished", "live"]) -> Iterator[Preparation]:
    """Read what is claimed, and hold the folder of results and the sinks that are asked for.

    Args:
        values: Of the command's options, by the names of their parameters.
        mode: What kind of run is checked.

    Raises:
        TraincheckError: Something of it can't be used.
    """
    if values["check_relation_first"]:
        note("--check-relation-first has no effect: all relations are checked in one pass")
    claims = read_claims(
        values["invariants"],
        baseline=values["baseline"],
        with_suppressed=values["ignore_suppressions"],
    )
    for text in claims.notes:
        note(text)
    limits = Threshold(
        fail_on=values["fail_on"],
        min_coverage=values["min_coverage"],
        exit_zero=values["exit_zero"],
    )
    folder = values["output_dir"] or _named_after_the_time(mode)
    session = Session(
        mode=mode,
        output_dir=folder,
        invariants={each.id: each for each in claims.invariants},
    )
    with opened_results(folder), closing(Sinks.started(values, session)) as sinks:
        yield Preparation(
            claims=claims,
            folder=folder,
            sinks=sinks,
            show=printer(values["output_format"]),
            limits=limits,
            baseline=values["write_baseline"],
        )


def _named_after_the_time(mode: Literal["finished", "live"]) -> Path:
    who = {"finished": "checker", "live": "onlinechecker"}[mode]
    return Path(f"traincheck_{who}_results_{datetime.now().astimezone():%Y%m%d_%H%M%S}")
