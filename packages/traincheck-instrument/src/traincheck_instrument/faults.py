"""Keeps the recorder's own faults away from the training program."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class Faults:
    """Reports faults, and tells the first of each kind on stderr; with `strict`, raises them."""

    report: Callable[[str], None]  # writes the gap into the trace
    strict: bool = False
    _told: set[tuple[str, str]] = attrs.field(factory=set)

    def contain(self, doing: str, error: Exception) -> None:
        """Take note of a fault met while `doing` something; call it from an except block."""
        if self.strict:
            raise error
        # What came out of the program may fail to say what it is, and stderr may be closed.
        with contextlib.suppress(Exception):
            detail = _in_words(doing, error)
            self.report(detail)
            kind = (doing, type(error).__name__)
            if kind not in self._told:
                self._told.add(kind)
                sys.stderr.write(f"traincheck: not recorded, training goes on: {detail}\n")


def _in_words(doing: str, error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"({where.name}, line {where.lineno})"
    try:
        return f"{doing}: {type(error).__name__}: {error} {place}"
    except Exception:  # noqa: BLE001  an error of the program's own making
        return f"{doing}: {type(error).__name__} {place}"
