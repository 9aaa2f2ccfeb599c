"""The options `--config` and `--use-config`, which give click the values of a file as defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traincheck_launcher.configuration.given import Given
from traincheck_launcher.configuration.keys import keys_of
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Function = TypeVar("_Function", bound="Callable[..., Any]")

# Names of parameters that name the same thing in two ways: one that is typed stands for both.
_ALTERNATIVES = (("pyscript", "module"), ("script", "module"))
CONFIG_GROUP = {"Config file": ("config", "use_config")}
DEFAULT_NAME = "traincheck.yml"


def config_options(function: _Function) -> _Function:
    """Add `--config` and `--use-config`; other eager options come after them."""
    uses = click.option(
        "--use-config",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        help=f"Take it from {DEFAULT_NAME}, or from the file that --config names.",
    )
    return click.option(
        "--config",
        cls=_ConfigOption,
        type=click.Path(path_type=Path),
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        help="Take from this file what the command line does not give; its keys are the options, "
        "with underscores.",
    )(uses(function))


class _ConfigOption(click.Option):
    """Is there before all other options look for their values, and gives them those of the file."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the file that the command line names."""
        result = super().handle_parse_result(ctx, opts, args)
        given = Given.of(ctx)
        given.typed = dict(opts)
        if (path := _path(opts)) is not None and not ctx.resilient_parsing:
            # Imported here so that YAML is read only by those who have a file.
            from traincheck_launcher.configuration.document import read_document  # noqa: PLC0415
            from traincheck_launcher.configuration.file_values import file_values  # noqa: PLC0415

            known = {**keys_of(ctx.command.get_params(ctx)), **given.other_keys}
            given.file = file_values(read_document(path), known)
            ctx.default_map = _without_alternatives(given.file.values, opts)
        return result


def _without_alternatives(values: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    pairs = [(one, other) for pair in _ALTERNATIVES for one, other in (pair, pair[::-1])]
    replaced = {other for one, other in pairs if isinstance(typed.get(one), str)}
    return {name: value for name, value in values.items() if name not in replaced}


def _path(opts: Mapping[str, Any]) -> Path | None:
    if (named := opts.get("config")) is not None:
        return Path(named)
    if not opts.get("use_config"):
        return None
    path = Path(DEFAULT_NAME)
    if not path.exists():
        raise ConfigError(
            f"--use-config: there is no {DEFAULT_NAME} here; name the file with --config, or write "
            "one with 'traincheck config init'"
        )
    return path
