"""The command `traincheck-schema` (`traincheck schema`): what can be done with documents."""

from __future__ import annotations

import click

from traincheck_trace_schema.cli import TraincheckGroup
from traincheck_trace_schema.commands.migrate import migrate
from traincheck_trace_schema.commands.schema import schema
from traincheck_trace_schema.commands.show import show
from traincheck_trace_schema.commands.validate import validate


@click.group("schema", cls=TraincheckGroup)
def main() -> None:
    """Look at, validate and migrate traces, invariants, plans and results."""


for command in (show, validate, migrate, schema):
    main.add_command(command)
