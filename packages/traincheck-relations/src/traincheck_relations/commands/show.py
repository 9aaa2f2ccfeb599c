"""The command `traincheck invariants show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from traincheck_relations.commands.files import INVARIANT_FILE, read
from traincheck_trace_schema.cli import TraincheckCommand, say

if TYPE_CHECKING:
    from pathlib import Path


@click.command("show", cls=TraincheckCommand)
@click.argument("file", type=INVARIANT_FILE)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def show(file: Path, ids: tuple[str, ...]) -> None:
    """Tell everything about single invariants.

    ID is an id or the beginning of one. Told are the claim and when it holds, what it is about, the
    runs and the number of occasions that it was inferred from, what a trace must have recorded to
    check it, and whether it is suppressed.

    \b
    Example:
      traincheck invariants show invariants.json 30343684
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_relations.commands.facts import facts  # noqa: PLC0415  --help needs none
    from traincheck_relations.managing.ids import by_prefix  # noqa: PLC0415
    from traincheck_relations.suppression import Suppressions, suppressions_beside  # noqa: PLC0415
    from traincheck_trace_schema.commands.screen import Screen  # noqa: PLC0415
    from traincheck_trace_schema.commands.table import terminal_width  # noqa: PLC0415

    invariants = {each.id: each for each in read(file)}
    asked = [by_prefix(each, invariants, where=str(file)) for each in ids]
    suppressions = Suppressions.of(suppressions_beside([file]))
    screen = Screen(terminal_width())
    for number, id_ in enumerate(dict.fromkeys(asked)):
        if number:
            say()
        invariant = invariants[id_]
        say(id_)
        for line in screen.facts(facts(invariant, suppressions.find(invariant))):
            say(line)
