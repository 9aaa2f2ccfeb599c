"""The command `traincheck-collect`."""

from __future__ import annotations

import sys
from typing import Any

import click

from traincheck_launcher.commands.options import GROUPS, collect_options
from traincheck_launcher.configuration.command import ConfigurableCommand
from traincheck_launcher.configuration.given import Given
from traincheck_trace_schema.errors import ConfigError


@click.command(
    cls=ConfigurableCommand,
    groups=GROUPS,
    no_args_is_help=True,
    options_metavar="[OPTIONS] [-- ARGUMENTS...]",
)
@collect_options
@click.pass_context
def collect(ctx: click.Context, /, *, explains: bool, verbose: bool, **values: Any) -> int:
    """Run a training program and record what it does.

    The program runs as it would by itself; what stands after -- are its arguments. The exit code
    is the program's own.

    \b
    Examples:
      traincheck-collect -p train.py --models-to-track model -- --epochs 3
      traincheck-collect -m pkg.train --models-to-track model -- --epochs 3
      traincheck-collect -p train.py -s run.sh --models-to-track model
      traincheck-collect -p train.py --nproc-per-node 2 --models-to-track model
      traincheck-collect -p train.py --models-to-track model -i invariants.json
      traincheck-collect --use-config --config traincheck.yml
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    # Imported here so that --help answers at once.
    from traincheck_launcher.options import CollectOptions  # noqa: PLC0415
    from traincheck_launcher.running import collection  # noqa: PLC0415

    given = Given.of(ctx)
    options = CollectOptions.of(values, arguments=given.arguments, configured=given.from_file)
    if verbose and not explains:
        raise ConfigError("--verbose: says more of what --explain shows; give both, or neither")
    if explains:
        return collection.explain_only(options, is_verbose=verbose)
    return collection.collect(options, tuple(sys.argv))


def main() -> None:
    """Run `traincheck-collect`."""
    collect(prog_name="traincheck-collect")
