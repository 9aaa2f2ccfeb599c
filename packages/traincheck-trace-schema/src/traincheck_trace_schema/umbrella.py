"""The command `traincheck`: its subcommands are those of the packages that are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import TraincheckGroup
from traincheck_trace_schema.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "traincheck.commands"

_INDENT = 6  # columns around the names in click's list of commands


class InstalledCommands(TraincheckGroup):
    """The commands that installed distributions offer; each is loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the installed commands; nothing is imported."""
        del ctx
        return sorted(_entry_points())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command.

        Raises:
            PluginError: it is installed and cannot be loaded.
        """
        del ctx
        entry = _entry_points().get(cmd_name)
        return None if entry is None else _load(entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands; one that is broken says so and spares the others."""
        names = self.list_commands(ctx)
        room = formatter.width - max(map(len, names), default=0) - _INDENT
        rows = [(name, self._short_help(ctx, name, room)) for name in names]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str, room: int) -> str:
        try:
            command = self.get_command(ctx, name)
        except PluginError as error:
            return f"({error})"
        return command.get_short_help_str(room) if command else ""


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415  30 ms, not needed by other commands

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _load(entry: EntryPoint) -> click.Command:
    source = entry.dist.name if entry.dist else entry.value
    try:
        command = entry.load()
    except Exception as error:  # a plugin may fail in any way
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(
            f"Command {entry.name!r} of {source} cannot be loaded: {reason}"
        ) from error
    if not isinstance(command, click.Command):
        raise PluginError(f"Command {entry.name!r} of {source} is {command!r}, not a click command")
    return command


@click.command(cls=InstalledCommands)
def main() -> None:
    """Find silent errors in training runs: collect, infer, check."""
