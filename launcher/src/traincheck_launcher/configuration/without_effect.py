"""Options of TrainCheck 0.x that are taken so that old commands run, and that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traincheck_launcher.configuration.switch import Switch
from traincheck_trace_schema.cli import note

if TYPE_CHECKING:
    from collections.abc import Sequence


class WithoutEffect(Switch):
    """A switch that says why it isn't needed, or, if something would be missed, is refused."""

    def __init__(
        self, param_decls: Sequence[str], *, reason: str, refused: bool = False, **attrs: Any
    ) -> None:
        self._reason = reason
        self._is_refused = refused
        super().__init__(param_decls, **{**attrs, "callback": self._tell, "expose_value": False})

    def _tell(self, ctx: click.Context, param: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001  click's signature
        if not is_asked or ctx.resilient_parsing:
            return
        if self._is_refused:
            raise click.BadParameter(self._reason, ctx, param)
        note(f"{self.opts[0]}: {self._reason}")
