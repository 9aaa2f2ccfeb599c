"""What a reporter is: a place where results are told, offered in `traincheck.reporters`.

A reporter adds its options to the commands that check, and begins when these ask for it. What it
needs beyond this package it imports then, not before: `--help` answers at once without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import attrs

from traincheck_check.judging.outcome import Outcome
from traincheck_trace_schema.invariants import Invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


@attrs.frozen(kw_only=True)
class Session:
    """A call of a command that checks: all that its reports have in common."""

    mode: Literal["finished", "live"]
    output_dir: Path  # the results of several runs lie in folders below
    invariants: Mapping[str, Invariant]  # by id


@attrs.frozen(kw_only=True)
class Report:
    """What was found out about one run, so far."""

    name: str  # of the run, empty where it is the only one
    folder: Path  # with its results
    outcome: Outcome
    warnings: tuple[str, ...] = ()  # what makes the results less than they seem


class Sink(Protocol):
    """Where the reports of a session go, once a reporter has begun."""

    def update(self, report: Report) -> None:
        """Tell the latest of a run. Of one that goes on, more may follow; of one that is over, not.

        Raises:
            OSError: It can't be told. Any exception is told to the user, and costs this sink only.
        """

    def close(self) -> None:
        """The session is over; what was told last is final."""


class Reporter(Protocol):
    """Tells results somewhere. Instances are stateless and cheap to make."""

    name: str

    def options(self) -> Sequence[click.Option]:
        """Return the options that it adds to the commands; their names must be its own."""

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin, if the values of its options ask for it; else return None.

        Args:
            values: Of all options of the command, by the names of their parameters.
            session: What is about to be checked.

        Raises:
            ConfigError: It can't begin: its library is not installed, or the options are wrong.
        """
