"""The command `traincheck-onlinecheck`: checks a run while it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from traincheck_check.commands.options import GROUPS, CheckCommand, check_options
from traincheck_trace_schema.cli import (
    debug_option,
    given_traces,
    growing_trace_options,
    warn,
)
from traincheck_trace_schema.errors import TraceError

_EXAMPLES = """\b
Examples:
  traincheck-onlinecheck -f trace -i invariants.json
  traincheck-onlinecheck -f trace -i invariants.json --exit-on-idle 300 -o results
"""
_POLL_SECONDS = 0.1
_IDLE_SECONDS = 60.0  # of --exit-on-idle without a number: loading and checkpoints take some
_GROUPS = GROUPS | {
    "How it ends": ("exit_on_idle", "until_eof", *GROUPS["How it ends"]),
    "How it follows": (
        *("run_id", "rank_timeout", "poll_seconds", "report_interval", "progress", "verbose"),
    ),
}


@click.command(
    "onlinecheck", cls=CheckCommand, groups=_GROUPS, no_args_is_help=True, epilog=_EXAMPLES
)
@growing_trace_options
@check_options
@debug_option
@click.option(
    "--exit-on-idle",
    type=click.FloatRange(0, min_open=True),
    is_flag=False,
    flag_value=_IDLE_SECONDS,
    metavar="[SECONDS]",
    help="End when nothing new has come for so long (without a number: 60).  [default: wait while "
    "a process may go on]",
)
@click.option(
    "--until-eof",
    is_flag=True,
    help="The run is over when standard input ends, and not before: for a program that starts the "
    "check, and knows.",
)
@click.option("--run-id", help="The run to wait for.  [default: the first that is there]")
@click.option(
    "--rank-timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    metavar="SECONDS",
    help="Compare the others without a rank that is silent for so long while they go on.  "
    "[default: 60]",
)
@click.option(
    "--poll-seconds",
    type=click.FloatRange(0, min_open=True),
    default=_POLL_SECONDS,
    metavar="SECONDS",
    help="How soon it is looked again after something new has come; where nothing comes, a "
    "twentieth of the silence, up to 0.1.  [default: 0.1]",
)
@click.option(
    "--progress",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Tell in this file how far the check has come, for programs that wait for its verdict.",
)
@click.option(
    "--report-interval-seconds",
    "report_interval",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    metavar="SECONDS",
    help="How often results are written where nothing new is found.  [default: 10]",
)
@click.option("-v", "--verbose", is_flag=True, help="Tell every few seconds how far the run is.")
def onlinecheck(**values: Any) -> int:
    """Check a training run against invariants while it goes on.

    Violations are printed as they are found, and the results written, which other programs may
    read at any time. Ends when all ranks have ended; Ctrl-C ends it with what was found so far.

    Exits as traincheck-check does.
    """
    from traincheck_check.commands.announcing import Announcing  # noqa: PLC0415  --help: no need
    from traincheck_check.commands.attending import Attending  # noqa: PLC0415
    from traincheck_check.commands.end_of_input import EndOfInput  # noqa: PLC0415
    from traincheck_check.commands.interruption import Interruption  # noqa: PLC0415
    from traincheck_check.commands.preparation import prepared  # noqa: PLC0415
    from traincheck_check.commands.telling import SHOWN, Pulse, Telling  # noqa: PLC0415
    from traincheck_check.judging.following import Following, Waiting  # noqa: PLC0415

    waiting = Waiting(
        paths=tuple(given_traces(values["trace_folders"], values["traces"])),
        run_id=values["run_id"],
        rank_timeout=values["rank_timeout"],
        idle_seconds=values["exit_on_idle"],
        strict=values["strict"],
    )
    # Until all is written: a signal after the last record is no reason to lose the verdict.
    with Interruption() as interruption, prepared(values, "live") as session:
        following = Following(waiting, session.claims)
        telling = Telling(
            following=following,
            session=session,
            show=SHOWN[values["output_format"]],
            every=values["report_interval"],
            pulse=Pulse(is_on=values["verbose"]),
        )
        announcing = Announcing(values["progress"], following, session.limits)
        announcing.begin()
        attending = Attending(
            telling=telling,
            announcing=announcing,
            interruption=interruption,
            end_of_input=EndOfInput() if values["until_eof"] else None,
            poll_seconds=values["poll_seconds"],
        )
        try:
            attending.follow(following)
        except TraceError as error:
            if following.run.shards:  # nobody is to wait for the end of what has ended
                following.stop(str(error))
                telling.tell()
            raise
        finally:
            announcing.announce(is_running=False)
        report = telling.tell()
        telling.tell_notes()
        for text in report.warnings:
            warn(text)
        session.show(report)
        return session.end([report.outcome])


def main() -> None:
    """Run the command."""
    onlinecheck()
