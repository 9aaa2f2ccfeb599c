"""The command `traincheck diff`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traincheck_trace_schema.cli import note, say
from traincheck_trace_schema.errors import (
    EXIT_CLEAN,
    EXIT_INCOMPLETE,
    EXIT_VIOLATIONS,
    ConfigError,
)
from traincheck_trace_schema.option_groups import GroupedCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_check.comparing.choice import Choice
    from traincheck_check.comparing.result import Comparison

# As `comparing.result.KINDS`, which is not imported for `--help`.
_KINDS = (
    *("steps", "calls", "arguments", "results"),
    *("gradients", "parameters", "buffers", "settings"),
)
_GROUPS = {
    "What is compared": (
        "first",
        "second",
        "only",
        "ignore",
        "ranks",
        "steps",
        "atol",
        "rtol",
        "strict",
    ),
    "What is told": ("output_format", "html"),
}
_TRACE = click.Path(exists=True, path_type=Path)


class _Steps(click.ParamType[Any]):
    """`FIRST:LAST`, either of which may be left out."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, int | None]:
        """Return the first and the last step."""
        if isinstance(value, tuple):
            return value
        first, colon, last = str(value).partition(":")
        ends = (first, last if colon else first)
        if not any(ends) or not all(not end or end.isdecimal() for end in ends):
            self.fail(f"{value!r} is no range of steps as 3:7, 3: or :7", param, ctx)
        begin, end = (int(each) if each else None for each in ends)
        if begin is not None and end is not None and end < begin:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return begin, end


class _Kinds(click.ParamType[Any]):
    """Kinds of differences, with commas between."""

    name = "KINDS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the kinds."""
        if isinstance(value, tuple):
            return value
        kinds = tuple(each.strip() for each in str(value).split(","))
        for kind in kinds:
            if kind not in _KINDS:
                self.fail(f"{kind!r} is none of {', '.join(_KINDS)}", param, ctx)
        return kinds


_EXAMPLES = """\b
Examples:
  traincheck diff trace_before_upgrade trace_after_upgrade
  traincheck diff A B --steps :100 --only calls,settings --html diff.html
"""


@click.command("diff", cls=GroupedCommand, groups=_GROUPS, no_args_is_help=True, epilog=_EXAMPLES)
@click.argument("first", metavar="A", type=_TRACE)
@click.argument("second", metavar="B", type=_TRACE)
@click.option(
    "--only",
    type=_Kinds(),
    help=f"Compare these kinds only, with commas between: {', '.join(_KINDS)}.",
)
@click.option("--ignore", type=_Kinds(), help="Do not compare these kinds.")
@click.option(
    "--rank",
    "ranks",
    type=click.IntRange(0),
    multiple=True,
    metavar="N",
    help="Compare this rank only; may be repeated.",
)
@click.option(
    "--steps",
    type=_Steps(),
    help="Compare these training steps only, the last included; either may be left out.",
)
@click.option(
    "--atol",
    type=click.FloatRange(0),
    default=0.0,
    metavar="X",
    help="Numbers that differ by no more are equal.  [default: 0]",
)
@click.option(
    "--rtol",
    type=click.FloatRange(0),
    default=0.0,
    metavar="X",
    help="The same, as a share of the larger number. Tensors need recorded data or statistics "
    "for this; where only digests are recorded, they are compared exactly.  [default: 0]",
)
@click.option("--strict", is_flag=True, help="Refuse a trace at the first line that is no record.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How the comparison is printed.  [default: text]",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page about the comparison, too.",
)
def diff(first: Path, second: Path, **values: Any) -> int:
    """Say where two runs of what should be the same program part.

    A and B are the folders, or files, of one trace each. Told is the first difference of each kind
    (calls, arguments, results, gradients, parameters, buffers, settings, number of steps) in the
    order in which they happened: the first is the likely cause. Times, addresses, process ids and
    where files lie are no differences. Of what only one trace records nothing is said.

    Exits with 0 if the runs are the same, 1 if they differ, 2 if the input is unusable, and 3 if
    nothing could be compared, or a trace is incomplete and no difference was found.
    """
    from traincheck_check.comparing.comparison import compare  # noqa: PLC0415  --help needs none of them
    from traincheck_trace_schema.reading import open_run  # noqa: PLC0415

    choice = _choice(values)
    runs = [open_run(path, strict=values["strict"]) for path in (first, second)]
    comparison = compare(runs[0], runs[1], (str(first), str(second)), choice)
    for run in runs:
        for text in run.notes():
            note(text)
    _PRINTERS[values["output_format"]](comparison)
    if values["html"] is not None:
        _write_page(comparison, values["html"])
    return _exit_code(comparison)


def _choice(values: dict[str, Any]) -> Choice:
    from traincheck_check.comparing.choice import Choice  # noqa: PLC0415
    from traincheck_check.comparing.result import KINDS  # noqa: PLC0415
    from traincheck_check.comparing.values import Tolerance  # noqa: PLC0415

    chosen, ignored = values["only"] or KINDS, values["ignore"] or ()
    kinds = [kind for kind in KINDS if kind in chosen and kind not in ignored]
    if not kinds:
        raise ConfigError("No kind of difference is left to compare; see --only and --ignore")
    first_step, last_step = values["steps"] or (None, None)
    return Choice(
        kinds=kinds,
        ranks=values["ranks"] or None,
        first_step=first_step,
        last_step=last_step,
        tolerance=Tolerance(values["atol"], values["rtol"]),
    )


def _print_text(comparison: Comparison) -> None:
    from traincheck_check.comparing.words import lines  # noqa: PLC0415
    from traincheck_check.reporting.screen import MAX_WIDTH, wrapped  # noqa: PLC0415

    told = lines(comparison)
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # it may be closed
    for line in wrapped(told, width) if is_terminal else told:
        say(line)


def _print_json(comparison: Comparison) -> None:
    from traincheck_trace_schema.codec import dumps, unstructure  # noqa: PLC0415

    say(dumps(unstructure(comparison)))


_PRINTERS: dict[str, Callable[[Comparison], None]] = {"text": _print_text, "json": _print_json}


def _write_page(comparison: Comparison, path: Path) -> None:
    from traincheck_check.comparing.page import page  # noqa: PLC0415  loads a template engine
    from traincheck_trace_schema.files import write_atomically  # noqa: PLC0415

    write_atomically(path, page(comparison))
    note(f"the page is in {path}")


def _exit_code(comparison: Comparison) -> int:
    if comparison.verdict == "differ":
        return EXIT_VIOLATIONS
    if comparison.verdict == "same" and comparison.is_complete:
        return EXIT_CLEAN
    return EXIT_INCOMPLETE
