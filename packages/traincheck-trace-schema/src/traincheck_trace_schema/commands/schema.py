"""The command `traincheck-schema schema`."""

from __future__ import annotations

import click

from traincheck_trace_schema.cli import TraincheckCommand


@click.command("schema", cls=TraincheckCommand)
@click.argument("name")
@click.option(
    "--of-version",
    metavar="VERSION",
    help="Of the document, as 1.0; the one that is written today if left out.",
)
def schema(name: str, of_version: str | None) -> None:
    """Print the JSON Schema of NAME: trace, invariants, plan, results, suppressions, progress.

    That of a trace, of invariants or of suppressions describes one line of such a file.

    \b
    Example:
      traincheck-schema schema trace > trace.schema.json
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_trace_schema.validation import schema_text  # noqa: PLC0415  0.1 s

    click.echo(schema_text(name, of_version), nl=False)
