"""The command `traincheck-schema show`."""

from __future__ import annotations

from pathlib import Path

import click

from traincheck_trace_schema.cli import TraincheckCommand, say

_TOP = 10


@click.command("show", cls=TraincheckCommand)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option(
    "-n",
    "--top",
    type=click.IntRange(min=1),
    default=_TOP,
    show_default=True,
    help="How many rows a table may have.",
)
@click.option("-a", "--all", "is_all", is_flag=True, help="Show every row.")
@click.option("--strict", is_flag=True, help="Refuse a trace at the first line that is no record.")
def show(paths: tuple[Path, ...], *, top: int, is_all: bool, strict: bool) -> None:
    """Say what is in a trace, invariants, a plan, results, suppressions or progress.

    PATH is a file, or a folder, with its subfolders; shards of one run are shown as one. Of a
    trace: processes, steps, stages, functions by number of calls, variables, gaps.

    \b
    Examples:
      traincheck-schema show trace_folder
      traincheck-schema show --all trace_folder
      traincheck-schema show invariants.json
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_trace_schema.commands.contents import screens  # noqa: PLC0415  0.1 s
    from traincheck_trace_schema.commands.screen import Screen  # noqa: PLC0415
    from traincheck_trace_schema.commands.table import terminal_width  # noqa: PLC0415

    screen = Screen(terminal_width(), None if is_all else top)
    for number, lines in enumerate(screens(paths, screen, is_strict=strict)):
        if number:
            say()
        for line in lines:
            say(line)
