"""The command `traincheck invariants diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from traincheck_relations.commands.files import INVARIANT_FILE, read
from traincheck_trace_schema.cli import TraincheckCommand, say
from traincheck_trace_schema.errors import EXIT_CLEAN

if TYPE_CHECKING:
    from pathlib import Path

_DIFFERS = 1  # the exit code, as that of diff(1); 2 is for what cannot be compared


@click.command("diff", cls=TraincheckCommand)
@click.argument("first", metavar="A", type=INVARIANT_FILE)
@click.argument("second", metavar="B", type=INVARIANT_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with ids.")
def diff(first: Path, second: Path, *, as_json: bool) -> int:
    """Say in which invariants two files differ.

    Told is what only A has (-), what only B has (+), and what both have under other conditions (~).
    Numbers of examples, runs and likelihoods don't matter.

    Exit codes: 0 no difference, 1 some difference, 2 the files cannot be compared.

    \b
    Example:
      traincheck invariants diff before_upgrade.json after_upgrade.json
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_relations.commands.differing import as_lines, as_object  # noqa: PLC0415
    from traincheck_relations.managing.difference import difference  # noqa: PLC0415  --help
    from traincheck_trace_schema.codec import dumps  # noqa: PLC0415  needs none of them

    found = difference(read(first), read(second))
    if as_json:
        click.echo(dumps(as_object(found), indent=2))
    else:
        for line in as_lines(found, first=str(first), second=str(second)):
            say(line)
    return _DIFFERS if found else EXIT_CLEAN
