"""What the commands that check do before they read a trace, and after."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from traincheck_check.commands.printing import Printer, Voice, print_text, printer
from traincheck_check.judging.baseline import write_baseline
from traincheck_check.judging.claims import Claims, read_claims
from traincheck_check.judging.exit_code import Threshold
from traincheck_check.judging.output_folder import opened_results, remove_former
from traincheck_check.reporting.api import Report, Session
from traincheck_check.reporting.sinks import Sinks
from traincheck_trace_schema.cli import note, say
from traincheck_trace_schema.results_file import REPORT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_check.judging.outcome import Outcome


@attrs.define(kw_only=True, eq=False)
class Preparation:
    """What is checked against, and where it is told."""

    claims: Claims
    folder: Path  # of the results
    limits: Threshold
    voice: Voice
    _sinks: Sinks
    _print: Printer
    _baseline: Path | None  # to be written
    _has_begun: bool = False  # to write results

    def keep(self, report: Report) -> None:
        """Write the results of a run, and tell them to the sinks.

        Raises:
            ConfigError: They can't be written.
        """
        if not self._has_begun:
            self._has_begun = True
            remove_former(self.folder)
        report.outcome.write(report.folder)
        self._sinks.update(report)

    def show(self, report: Report) -> None:
        """Print the results of a run."""
        self.voice.say(partial(self._print, report, self.limits))

    def end(self, outcomes: Sequence[Outcome]) -> int:
        """Return the exit code of what was found; if asked for, keep that as a baseline.

        Raises:
            ConfigError: The baseline can't be written.
            BrokenPipeError: Nobody read all that was printed.
        """
        page = self.folder / REPORT_NAME
        if self._print is print_text and page.exists():
            self.voice.say(lambda: say(f"The report is {page}"))
        if self._baseline is not None:
            write_baseline(self._baseline, outcomes, self.claims.known)
        self.voice.end()
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
            limits=limits,
            voice=Voice(),
            sinks=sinks,
            print=printer(values["output_format"]),
            baseline=values["write_baseline"],
        )


def _named_after_the_time(mode: Literal["finished", "live"]) -> Path:
    who = {"finished": "checker", "live": "onlinechecker"}[mode]
    return Path(f"traincheck_{who}_results_{datetime.now().astimezone():%Y%m%d_%H%M%S}")
