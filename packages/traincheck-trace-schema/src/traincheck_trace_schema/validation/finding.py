"""What validating finds: problems, and what is legal and probably a mistake."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

Severity: TypeAlias = Literal["problem", "hint", "note"]


@attrs.frozen
class Finding:
    """What was found, and in which line; None: in the file as a whole.

    A problem makes a file invalid. A hint is legal and probably a mistake, a note worth knowing.
    """

    line: int | None
    what: str
    severity: Severity = "problem"


@attrs.define
class Remarks:
    """What the rules have to say of the record at hand; what was lost is not missed after it."""

    problems: list[str] = attrs.field(factory=list)
    hints: list[str] = attrs.field(factory=list)
    is_lossy: bool = False  # records are missing, to which others may refer

    def problem(self, what: str) -> None:
        """Tell of a mistake."""
        self.problems.append(what)

    def unless_lost(self, what: str) -> None:
        """Tell of something that is not there, if it cannot have been lost."""
        if not self.is_lossy:
            self.problems.append(what)

    def hint(self, what: str) -> None:
        """Tell of what is probably a mistake, if it does not come from what was lost."""
        if not self.is_lossy:
            self.hints.append(what)

    def drain(self) -> tuple[list[str], list[str]]:
        """Return problems and hints, and begin anew."""
        drained = self.problems, self.hints
        self.problems, self.hints = [], []
        return drained
