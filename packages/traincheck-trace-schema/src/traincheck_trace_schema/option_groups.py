"""A command whose help tells its options in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.cli import TraincheckCommand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

_REST = "Other options"


class GroupedCommand(TraincheckCommand):
    """A command with `groups`: titles, each with the names of its options' parameters."""

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.groups = groups

    def option_groups(self) -> Mapping[str, Sequence[str]]:
        """Return the groups; a name that no option has is passed over."""
        return self.groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group, and one for what is in none."""
        told = {
            param.name: record
            for param in self.get_params(ctx)
            if (record := param.get_help_record(ctx)) is not None
        }
        for title, names in self.option_groups().items():
            with formatter.section(title):
                formatter.write_dl([told.pop(name) for name in names if name in told])
        with formatter.section(_REST):
            formatter.write_dl(list(told.values()))
