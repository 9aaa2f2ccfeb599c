"""What both runs recorded: only of that can the one say whether it differs from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from traincheck_trace_schema.records import Recording

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


_OWN: Final = ("__main__", "__mp_main__")  # where a program defines its own functions


@attrs.define(eq=False)
class Scope:
    """Which functions, and which looks at variables, one run has in common with the other.

    In full mode the functions of the program itself are recorded wherever they are, those of a
    package only if `functions` names them.
    """

    other: Recording
    is_same: bool
    _functions: frozenset[str]
    _observed: frozenset[str]
    _known: dict[str, bool] = attrs.field(factory=dict)

    @classmethod
    def of(cls, own: Recording, other: Recording) -> Scope:
        """Return what one run's recording has in common with the other's."""
        is_same = own.mode == other.mode and own.plan_id == other.plan_id
        is_same = is_same and set(_of_packages(own)) == set(_of_packages(other))
        return cls(other, is_same, frozenset(other.functions), frozenset(other.observed))

    def has(self, documented: Sequence[str]) -> bool:
        """Whether the other run records a function too, given with what it overrides."""
        if self.is_same:
            return True
        name = documented[0]
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._has(documented)
        return known

    def has_look(self, function: str | None, documented: Sequence[str]) -> bool:
        """Whether the other run looks at variables there, too; None stands for a step's end."""
        if function is None or self.is_same:
            return True
        return not self._observed.isdisjoint((function, *documented))

    def _has(self, documented: Sequence[str]) -> bool:
        if not self._functions.isdisjoint(documented):
            return True
        if self.other.mode == "plan":
            return False
        return not self._functions or documented[0].partition(".")[0] in _OWN


def _of_packages(recording: Recording) -> Collection[str]:
    """Return the recorded functions that no program defines itself."""
    return [name for name in recording.functions if name.partition(".")[0] not in _OWN]
