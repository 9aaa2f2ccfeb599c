"""The values that a command would use, as a config file writes them, and their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import click
import yaml
from click.core import ParameterSource

from traincheck_launcher.configuration.given import Given
from traincheck_launcher.configuration.keys import ARGUMENTS, keys_of
from traincheck_launcher.configuration.without_effect import WithoutEffect

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND_LINE = "command line"
DEFAULT = "default"


@attrs.frozen(kw_only=True)
class ValueInUse:
    """What an option is set to."""

    key: str
    value: Any  # text, number, bool, a list of texts, or None
    source: str  # where it comes from, for people
    option: click.Option | None = None  # None: the arguments of the program

    @property
    def is_set(self) -> bool:
        """Whether somebody has set it."""
        return self.source != DEFAULT

    def line(self) -> str:
        """Return the line of a config file that sets it."""
        return f"{self.key}: {self.text()}"

    def text(self) -> str:
        """Return the value alone, as a config file writes it."""
        listed = yaml.safe_dump(
            [self.value], default_flow_style=True, allow_unicode=True, width=float("inf")
        )
        return listed.rstrip("\n")[1:-1]


def values_in_use(ctx: click.Context) -> Iterator[ValueInUse]:
    """Yield what the options of a context are set to, in the order of its command."""
    given = Given.of(ctx)
    for key, option in keys_of(ctx.command.get_params(ctx)).items():
        if not isinstance(option, WithoutEffect):
            value, source = _value(ctx, option, given)
            yield ValueInUse(key=key, value=_plain(value, option), source=source, option=option)
    source = DEFAULT
    if given.typed_arguments is not None:
        source = COMMAND_LINE
    elif given.file is not None and given.file.arguments is not None:
        source = f"{given.file.path}:{given.file.arguments_line}"
    yield ValueInUse(key=ARGUMENTS, value=list(given.arguments), source=source)


def _value(ctx: click.Context, option: click.Option, given: Given) -> tuple[Any, str]:
    assert option.name is not None  # noqa: S101  for the type checker; options have one
    source = ctx.get_parameter_source(option.name)
    if source is ParameterSource.COMMANDLINE:
        return given.typed[option.name], COMMAND_LINE
    if source is ParameterSource.DEFAULT_MAP and given.file is not None:
        return given.file.values[option.name], given.file.place(option.name)
    return option.get_default(ctx), DEFAULT


def _plain(value: Any, option: click.Option) -> Any:
    """Return a value as YAML has it: a number where digits are one."""
    if option.is_flag:
        return value is True
    if option.multiple:
        return [str(item) for item in value] if isinstance(value, (list, tuple)) else []
    if isinstance(value, str):
        return int(value) if value.isdecimal() and value == str(int(value)) else value
    return value if isinstance(value, (int, float)) else None
