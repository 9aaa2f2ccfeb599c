"""Keeps the recorder's own faults away from the training program."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

import attrs

from traincheck_instrument.recorder.interruptions import is_interruption
from traincheck_trace_schema.errors import DEBUG


@attrs.define(eq=False)
class Faults:
    """Reports faults, and tells the first of each kind on stderr; with `strict`, raises them."""

    report: Callable[[str], None]  # writes the gap into the trace
    strict: bool = False
    _told: set[tuple[str, str]] = attrs.field(factory=set)
    _waiting: list[str] = attrs.field(factory=list)  # there was no room on the stack to tell them

    def contain(self, doing: str, error: Exception) -> None:
        """Take note of a fault met while `doing` something; call it from an except block.

        An exception by which the program cut in is no fault, and goes on to the program.
        """
        try:
            if not (self.strict or is_interruption(error)):
                if self._tell(doing, type(error).__name__, _in_words(doing, error)):
                    _show_if_asked(error)
                return
        except RecursionError:
            self._waiting.append(doing)
            return
        except Exception as another:  # stderr may be closed
            if not is_interruption(another):
                return
            raise
        raise error

    def tell_waiting(self) -> None:
        """Tell what could not be told when it happened; once in each step."""
        while self._waiting:
            doing = self._waiting.pop()
            self._tell(doing, "RecursionError", f"{doing}: RecursionError: the stack was full")

    def _tell(self, doing: str, kind: str, detail: str) -> bool:
        """Report a fault, and say whether it is the first of its kind, which is told."""
        self.report(detail)
        if (doing, kind) in self._told:
            return False
        self._told.add((doing, kind))
        sys.stderr.write(f"traincheck: not recorded, training goes on: {detail}\n")
        return True


def _show_if_asked(error: Exception) -> None:
    if os.environ.get(DEBUG):
        traceback.print_exception(error)


def _in_words(doing: str, error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"({where.name}, line {where.lineno})"
    try:
        return f"{doing}: {type(error).__name__}: {error} {place}"
    except Exception as another:  # one of the program's own making may fail to say what it is
        if is_interruption(another):
            raise
        return f"{doing}: {type(error).__name__} {place}"
