"""The command `traincheck-schema migrate`."""

from __future__ import annotations

from pathlib import Path

import click

from traincheck_trace_schema.cli import TraincheckCommand, note, say


@click.command("migrate", cls=TraincheckCommand)
@click.argument("source", metavar="IN", type=click.Path(exists=True, path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
def migrate(source: Path, target: Path) -> None:
    """Write traces or invariants of TrainCheck 0.x anew, as version 1.0 has them.

    IN is a trace folder, a trace file or an invariant file of 0.x; OUT is what is written. All
    commands read old files as they are too. Steps of 0.x count from 1; they are moved to 0.

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
