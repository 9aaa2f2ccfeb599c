"""The command `traincheck invariants list`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from traincheck_relations.commands.choosing import Chosen, choosing_options
from traincheck_relations.commands.files import INVARIANT_FILE, read
from traincheck_trace_schema.cli import TraincheckCommand, note, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.suppressions import Suppression


@click.command("list", cls=TraincheckCommand)
@click.argument("file", type=INVARIANT_FILE)
@choosing_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print invariants as they stand in a file, one a line."
)
def list_(file: Path, *, as_json: bool, **options: Any) -> None:
    """Show the invariants of a file, a line each.

    Shown are the beginning of the id, the relation, how likely it is that a breach is a bug, on how
    many occasions the invariant held, and its sentence. In a pipe no line is wrapped or cut.

    Options choose some of them: all of what they ask must be met, and of an option with several
    values one. FILE comes first, since such an option takes all that follows.

    \b
    Examples:
      traincheck invariants list invariants.json
      traincheck invariants list invariants.json --function '*.backward' --grep grad
      traincheck invariants list invariants.json --json | head
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_relations.suppression import Suppressions, suppressions_beside  # noqa: PLC0415

    invariants = read(file)
    choice = Chosen(**options).choice([each.id for each in invariants], where=str(file))
    shown = choice.of(invariants)
    suppressed = Suppressions.of(suppressions_beside([file])).by_id(shown)
    if as_json:
        _print_json(shown, suppressed)
    elif shown:
        _print_table(shown, invariants, suppressed)
    if len(shown) < len(invariants) or not shown:
        note(f"{file}: {len(shown)} of {len(invariants)} invariants")


def _print_json(shown: Sequence[Invariant], suppressed: Mapping[str, Suppression]) -> None:
    from traincheck_trace_schema.codec import dumps, unstructure  # noqa: PLC0415  see files.read

    for each in shown:
        reason = {"suppressed": suppressed[each.id].reason} if each.id in suppressed else {}
        click.echo(dumps({**unstructure(each), **reason}))


def _print_table(
    shown: Sequence[Invariant],
    all_: Sequence[Invariant],
    suppressed: Mapping[str, Suppression],
) -> None:
    from traincheck_relations.commands.listing import listing  # noqa: PLC0415  see files.read
    from traincheck_relations.managing.ids import short_ids  # noqa: PLC0415
    from traincheck_trace_schema.commands.table import terminal_width  # noqa: PLC0415

    width = terminal_width() if sys.stdout.isatty() else None
    ids = short_ids([each.id for each in all_])
    head, *lines = listing(shown, ids=ids, suppressed=suppressed, width=width)
    say(click.style(head, bold=True))  # in a pipe nothing is styled
    for line in lines:
        say(line)
