"""The lines of the program that touched variables since they were last looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable


@attrs.define(eq=False)
class Touches:
    """Names the line behind a change that no call made.

    That which assigned an attribute of the variable. Else the line that reached the variable
    through its model, if only one did.
    """

    _assigned: dict[int, int] = attrs.field(factory=dict)  # number of a variable: line
    _reached: dict[str, int | None] = attrs.field(factory=dict)  # name: line; None: several lines

    def assign(self, number: int, line: int) -> None:
        """Take note that a line assigned to an attribute of the variable with this number."""
        self._assigned[number] = line

    def reach(self, name: str, line: int) -> None:
        """Take note that a line reached a model, or a part of it: `model`, `model.fc`."""
        self._reached[name] = line if self._reached.get(name, line) == line else None

    def line_behind(self, number: int, names: Iterable[str]) -> int | None:
        """Return the line behind a change of the variable with this number and these names."""
        if number in self._assigned:
            return self._assigned[number]
        if not self._reached:
            return None
        lines = {
            self._reached[part] for name in names for part in _parts(name) if part in self._reached
        }
        return lines.pop() if len(lines) == 1 else None

    def clear(self) -> None:
        """Forget them: all variables have been looked at."""
        self._assigned.clear()
        self._reached.clear()


def _parts(name: str) -> tuple[str, ...]:
    """Return what a variable may have been reached by: `model`, `model.fc` of `model.fc.weight`."""
    dots = [index for index, letter in enumerate(name) if letter == "."]
    return (*(name[:dot] for dot in dots), name)
