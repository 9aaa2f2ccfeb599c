"""The command `traincheck-schema migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import TraincheckCommand, note, say

if TYPE_CHECKING:
    from traincheck_trace_schema.legacy import Migration


@click.command("migrate", cls=TraincheckCommand)
@click.argument("source", metavar="IN", type=click.Path(exists=True, path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
def migrate(source: Path, target: Path) -> None:
    """Write traces or invariants of TrainCheck 0.x anew, as version 1.0 has them.

    IN is a trace file or an invariant file of 0.x, or a folder: all that is old in it, and in the
    folders below it, is written under the same relative names, and what is left is told. OUT is
    what is written; it must not exist. All commands but those that follow a run read old files as
    they are too. Steps of 0.x count from 1; they are moved to 0.

    \b
    Examples:
      traincheck-schema migrate old_trace_folder new_trace_folder
      traincheck-schema migrate old_invariants.json invariants.json
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_trace_schema import legacy  # noqa: PLC0415  0.1 s

    migration = legacy.migrate(source, target)
    for path in migration.written:
        say(f"wrote {path}")
    for text in migration.notes:
        note(text)
    say(_summed_up(migration))


def _summed_up(migration: Migration) -> str:
    written = f"Written: {_counted(len(migration.written), 'file')}"
    if migration.invariants:
        written += f" with {_counted(migration.invariants, 'invariant')}"
    if migration.saying_less:
        written += f", {migration.saying_less} of which say less than before"
    left = [
        _counted(count, what)
        for count, what in ((migration.left_out, "invariant"), (migration.files_left, "file"))
        if count
    ]
    return f"{written}. Left out: {' and '.join(left) or 'nothing'}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
