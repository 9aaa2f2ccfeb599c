"""Keeps the recorder's own faults away from the training program."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class Faults:
    """Counts faults and tells the first of each kind on stderr; with `strict`, raises them."""

    report: Callable[[str], None]  # writes the gap into the trace
    strict: bool = False
    count: int = 0
    _told: set[tuple[str, str]] = attrs.field(factory=set)

    def contain(self, doing: str, error: Exception) -> None:
        """Take note of a fault met while `doing` something; call it from an except block."""
        if self.strict:
            raise error
        self.count += 1
        kind = (doing, type(error).__name__)
        if kind in self._told:
            return
        self._told.add(kind)
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{doing}: {type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        sys.stderr.write(f"traincheck: not recorded, training goes on: {detail}\n")
        self.report(detail)
