"""A command that runs a program: with options that a config file may give, and arguments of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from traincheck_launcher.configuration.given import Given
from traincheck_launcher.configuration.keys import key_of
from traincheck_trace_schema.errors import ConfigError, TraincheckError
from traincheck_trace_schema.option_groups import GroupedCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPTION = re.compile(r"--[\w-]+")


class ConfigurableCommand(GroupedCommand):
    """Leaves what stands after `--` to the program; says where in a file a wrong value stands."""

    def other_keys(self) -> Mapping[str, click.Parameter]:
        """Return what a config file may give beside options, by key."""
        return {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before `--`; a stray word there is an error."""
        given = Given.of(ctx)
        given.other_keys = self.other_keys()
        end = args.index("--") if "--" in args else len(args)
        if end < len(args):
            given.typed_arguments = tuple(args[end + 1 :])
        try:
            return super().parse_args(ctx, args[:end])
        except click.BadParameter as error:
            place = None if error.param is None else given.place_of(ctx, error.param)
            if place is None:
                raise
            raise ConfigError(f"{place}: {_key(error.param)}: {_sentence(error)}") from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about an option that the file gives says where it stands."""
        try:
            return super().invoke(ctx)
        except TraincheckError as error:
            named = _OPTION.match(str(error))
            place = None if named is None else self._place(ctx, named[0])
            if place is None:
                raise
            raise type(error)(f"{place}: {error}") from error

    def _place(self, ctx: click.Context, spelled: str) -> str | None:
        given = Given.of(ctx)
        for param in self.get_params(ctx):
            if spelled in param.opts and (place := given.place_of(ctx, param)) is not None:
                return place
        return None


def _key(param: click.Parameter | None) -> str:
    return key_of(param) if isinstance(param, click.Option) else str(param and param.name)


def _sentence(error: click.BadParameter) -> str:
    return error.message.rstrip(".")
