"""The command `traincheck invariants filter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traincheck_relations.commands.choosing import Chosen, choosing_options
from traincheck_relations.commands.files import (
    INVARIANT_FILE,
    force_option,
    insist_on_place,
    output_option,
    read,
    tell_of_suppressions,
    write,
)
from traincheck_trace_schema.cli import TraincheckCommand, say, warn
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@click.command("filter", cls=TraincheckCommand)
@click.argument("file", type=INVARIANT_FILE)
@choosing_options
@output_option
@force_option
def filter_(file: Path, *, output: Path, force: bool, **options: Any) -> None:
    """Write a file with some of the invariants of another.

    All of what the options ask must be met, and of an option with several values one. FILE comes
    first, since such an option takes all that follows. What an invariant does not tell, as its
    likelihood in an old file, is not enough for any minimum.

    \b
    Examples:
      traincheck invariants filter all.json -o few.json --min-positive 20
      traincheck invariants filter all.json -o rest.json --relation ConsistencyRelation --invert
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    insist_on_place(output, [file], force=force)
    invariants = read(file)
    choice = Chosen(**options).choice([each.id for each in invariants], where=str(file))
    if not choice.asks:
        raise ConfigError("Nothing says which invariants to keep; see the options in --help")
    kept = choice.of(invariants)
    write(output, kept)
    if not kept:
        warn("no invariant is left")
    tell_of_suppressions([file], output)
    say(f"{output}: {len(kept)} of {len(invariants)} invariants")
