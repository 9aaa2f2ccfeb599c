"""The command `traincheck invariants merge`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from traincheck_relations.commands.files import (
    INVARIANT_FILE,
    force_option,
    insist_on_place,
    output_option,
    read,
    tell_of_suppressions,
    write,
)
from traincheck_trace_schema.cli import TraincheckCommand, say

if TYPE_CHECKING:
    from pathlib import Path


@click.command("merge", cls=TraincheckCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=INVARIANT_FILE)
@output_option
@force_option
def merge(files: tuple[Path, ...], *, output: Path, force: bool) -> None:
    """Write one file with the invariants of several, each once.

    Of an invariant that stands in several files the runs are joined and the numbers of examples
    added; they are left out where they can't be known, as where files share some of their runs. The
    order of the files doesn't matter, nor does it to give one twice.

    No trace is looked at: what one file claims, a run of another may contradict. To learn what
    holds in all runs, give traincheck-infer the traces of all.

    \b
    Example:
      traincheck invariants merge monday.json tuesday.json -o all.json
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_relations.managing.union import union  # noqa: PLC0415  --help needs none
    from traincheck_trace_schema.commands.screen import counted  # noqa: PLC0415

    insist_on_place(output, files, force=force)
    sets = [read(each) for each in files]
    merged = union(sets)
    write(output, merged)
    tell_of_suppressions(files, output)
    whole, lines = counted(len(merged), "invariant"), sum(map(len, sets))
    say(f"{output}: {whole}, of {lines:,} in {counted(len(files), 'file')}")
