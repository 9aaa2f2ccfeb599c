"""An option that is on or off, and that can be switched off where a config file switches it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO = "--no-"


class Switch(click.Option):
    """A flag `--x`, which `--no-x` undoes (or `--x` a flag `--no-x`); the help shows the first."""

    def __init__(self, param_decls: Sequence[str], **attrs: Any) -> None:
        super().__init__(param_decls, **{**attrs, "is_flag": True})
        self.secondary_opts.append(_undoing(next(o for o in self.opts if o.startswith("--"))))

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Leave out what undoes it, which would double the help."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        return record[0].removesuffix(f" / {self.secondary_opts[0]}"), record[1]


def _undoing(spelled: str) -> str:
    if spelled.startswith(_NO):
        return f"--{spelled.removeprefix(_NO)}"
    return f"{_NO}{spelled.removeprefix('--')}"
