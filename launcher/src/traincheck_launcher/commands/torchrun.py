"""The options that are passed on to torchrun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from traincheck_launcher.configuration.switch import Switch
from traincheck_launcher.starting.torchrun_options import TORCHRUN_OPTIONS

_Function = TypeVar("_Function", bound=Callable[..., Any])

TORCHRUN_GROUP = {
    "torchrun starts the ranks (all its long options are passed on)": (
        *(option.key for option in TORCHRUN_OPTIONS if option.help),
        "run_id",
    )
}


class _PassedOn(click.Option):
    """An option that is spelled with hyphens or underscores; the help shows the hyphens."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names = ", ".join(self.opts)
        return record[0].replace(names, self.opts[0]), record[1]


class _PassedOnSwitch(_PassedOn, Switch):
    """One that takes no value."""


def torchrun_options(function: _Function) -> _Function:
    """Add them, and the name of a run that several machines take part in."""
    function = click.option(
        "--run-id",
        metavar="ID",
        help="The name of this run, the same on all machines, and of no other run.  "
        "[default: --rdzv-id; on one machine, made up]",
    )(function)
    for option in reversed(TORCHRUN_OPTIONS):
        spellings = dict.fromkeys((f"--{option.name}", f"--{option.key}"))
        function = click.option(
            *spellings,
            option.key,
            cls=_PassedOnSwitch if option.metavar is None else _PassedOn,
            type=click.Path() if option.metavar == "DIR" else None,
            metavar=option.metavar,
            hidden=option.help is None,
            help=option.help,
        )(function)
    return function
