"""The command `traincheck config`: writes a config file, and shows what would be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from traincheck_launcher.commands.options import GROUPS, collect_options
from traincheck_launcher.configuration.command import ConfigurableCommand
from traincheck_launcher.configuration.given import Given
from traincheck_launcher.configuration.option import DEFAULT_NAME
from traincheck_trace_schema.cli import TraincheckGroup, note, say
from traincheck_trace_schema.errors import ConfigError


@click.group(cls=TraincheckGroup)
def config() -> None:
    """Write a config file of traincheck-collect, or show what one would do."""


@config.command(
    cls=ConfigurableCommand,
    groups={"The file to write": ("output",), **GROUPS},
    options_metavar="[OPTIONS] [-- ARGUMENTS...]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=DEFAULT_NAME,
    show_default=True,
    help="The file; one that is there is not overwritten.",
)
@collect_options
@click.pass_context
def init(ctx: click.Context, /, *, output: Path, **values: Any) -> None:
    """Write a config file that shows every key, its meaning and its default.

    What is given here as to traincheck-collect is set in the file, so a command line becomes one.

    \b
    Examples:
      traincheck config init
      traincheck config init -p train.py --models-to-track model -- --epochs 3
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_launcher.configuration.template import template  # noqa: PLC0415  reads YAML
    from traincheck_launcher.configuration.values_in_use import values_in_use  # noqa: PLC0415

    del values
    used = [value for value in values_in_use(ctx) if value.key != "output"]
    text = "\n".join(template(used, GROUPS, output)) + "\n"
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(
            f"--output: {output} is there already; name another file, or move it away"
        ) from error
    except OSError as error:
        raise ConfigError(f"--output: {output} cannot be written: {error.strerror}") from error
    say(f"{output} is written; use it with: traincheck-collect --config {output}")


@config.command(
    cls=ConfigurableCommand, groups=GROUPS, options_metavar="[OPTIONS] [-- ARGUMENTS...]"
)
@collect_options
@click.pass_context
def show(ctx: click.Context, /, **values: Any) -> None:
    """Show what traincheck-collect would use, and from where each value comes.

    Takes the options of traincheck-collect, and runs nothing.

    \b
    Examples:
      traincheck config show --config traincheck.yml
      traincheck config show --config traincheck.yml --sampling-interval 10
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_launcher.configuration.values_in_use import values_in_use  # noqa: PLC0415

    del values
    rows = [(value.key, value.text(), value.source) for value in values_in_use(ctx)]
    keys, texts = (max(len(row[column]) for row in rows) for column in (0, 1))
    for key, text, source in rows:
        say(f"{key:<{keys}}  {text:<{min(texts, 40)}}  {source}".rstrip())
    if Given.of(ctx).file is None and Path(DEFAULT_NAME).exists():
        note(f"{DEFAULT_NAME} is here and not used; --use-config does")
