"""What a command was given, and from where: the command line, a config file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import click

from traincheck_launcher.configuration.file_values import FileValues

_META = __name__  # where a context keeps it


@attrs.define
class Given:
    """What the values of a command's options come from."""

    typed: Mapping[str, Any] = attrs.field(factory=dict)  # on the command line, not converted
    typed_arguments: tuple[str, ...] | None = None  # of the program; None: there is no `--`
    file: FileValues | None = None
    other_keys: Mapping[str, click.Parameter] = attrs.field(factory=dict)  # of no option

    @classmethod
    def of(cls, ctx: click.Context) -> Given:
        """Return what belongs to a context."""
        given: Given = ctx.meta.setdefault(_META, cls())
        return given

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the program; those of the command line win."""
        if self.typed_arguments is not None:
            return self.typed_arguments
        return () if self.file is None else self.file.arguments or ()

    @property
    def from_file(self) -> tuple[str, ...]:
        """What the file says, for the record; empty if there is none."""
        return () if self.file is None else self.file.words

    def place_of(self, ctx: click.Context, param: click.Parameter) -> str | None:
        """Return where in a file a parameter gets its value; None if it gets it elsewhere."""
        if self.file is None or param.name not in self.file.lines:
            return None
        if ctx.get_parameter_source(param.name) is not click.core.ParameterSource.DEFAULT_MAP:
            return None
        return self.file.place(param.name)
