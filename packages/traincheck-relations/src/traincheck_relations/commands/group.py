"""The command `traincheck invariants`: what can be done with invariants."""

from __future__ import annotations

import click

from traincheck_relations.commands.diff import diff
from traincheck_relations.commands.filter import filter_
from traincheck_relations.commands.list import list_
from traincheck_relations.commands.merge import merge
from traincheck_relations.commands.show import show
from traincheck_relations.commands.suppress import suppress
from traincheck_trace_schema.cli import TraincheckGroup


@click.group("invariants", cls=TraincheckGroup)
def main() -> None:
    """List, compare, combine and suppress invariants.

    FILE is always a file that traincheck-infer wrote, also one of TrainCheck 0.x.
    """


for command in (list_, show, diff, merge, filter_, suppress):
    main.add_command(command)
