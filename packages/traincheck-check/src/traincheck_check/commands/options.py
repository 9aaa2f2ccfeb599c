"""What the commands that check have in common: their options, and those of the reporters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traincheck_trace_schema.cli import ManyValues
from traincheck_trace_schema.option_groups import GroupedCommand

if TYPE_CHECKING:
    from traincheck_check.judging.exit_code import FailOn

_Function = TypeVar("_Function", bound=Callable[..., Any])

GROUPS = {
    "What to check": (
        *("trace_folders", "traces", "invariants", "strict"),
        *("baseline", "write_baseline", "ignore_suppressions"),
    ),
    "How it ends": ("fail_on", "min_coverage", "exit_zero"),
    "What is told": ("output_dir", "output_format"),
}


class CheckCommand(GroupedCommand):
    """A command that checks; the installed reporters add their options to it."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its own options and those of the reporters."""
        return [*_of_reporters(), *super().get_params(ctx)]

    def option_groups(self) -> Mapping[str, Sequence[str]]:
        """Return the groups, and one of what the reporters add."""
        names = [str(option.name) for option in _of_reporters()]
        return {**super().option_groups(), "Where else it is told": names}


def _of_reporters() -> list[click.Option]:
    from traincheck_check.reporting.installed import reporters  # noqa: PLC0415  30 ms

    return [option for reporter in reporters() for option in reporter.options()]


class _FailOn(click.ParamType[Any]):
    """`any`, `new`, or a number of broken invariants."""

    name = "any|new|N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> FailOn:
        """Return the word or the number."""
        if value in {"any", "new"}:
            word: FailOn = value
            return word
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither 'any' nor 'new' nor a number from 1 on", param, ctx)
        return int(value)


def check_options(function: _Function) -> _Function:
    """Add the options that all commands that check have."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option(
        "-i",
        "--invariants",
        cls=ManyValues,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        required=True,
        help="Invariant files that traincheck-infer wrote.",
    ),
    click.option(
        "--baseline",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A suppression file: what it matches is known to be broken, and makes no check fail.",
    ),
    click.option(
        "--write-baseline",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write what is broken now, to be given as --baseline from then on.",
    ),
    click.option(
        "--ignore-suppressions",
        is_flag=True,
        help="Check also what is suppressed beside the invariant files.",
    ),
    click.option(
        "-o",
        "--output-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where to write the results.  [default: a folder that is named after the time]",
    ),
    click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json", "github"]),
        default="text",
        help="How the results are printed: text for people, json (a document a line), or github "
        "(annotations of a workflow).  [default: text]",
    ),
    click.option(
        "--fail-on",
        type=_FailOn(),
        default="new",
        help="What exits with 1: any broken invariant, those that are new (not in the baseline), "
        "or N new ones.  [default: new]",
    ),
    click.option(
        "--min-coverage",
        type=click.FloatRange(0, 100),
        default=0.0,
        metavar="PERCENT",
        help="Exit with 3 if fewer of the invariants applied.",
    ),
    click.option(
        "--check-relation-first",
        is_flag=True,
        help="Accepted and without effect: all relations are checked in one pass.",
    ),
    click.option(
        "--exit-zero", is_flag=True, help="Exit with 0 whatever is found, but not on bad input."
    ),
)
