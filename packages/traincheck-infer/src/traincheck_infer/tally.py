"""What is kept of the examples of a candidate: in which contexts it held and did not, how often.

Memory is bounded by what a precondition can tell apart, not by the number of examples: a property
with more values than a clause may list, such as a seed, is forgotten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_infer.confidence import ENOUGH_WINDOWS
from traincheck_relations.separation import MAX_VALUES
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_relations.api import Context, Example
    from traincheck_trace_schema.values import Scalar

# The type is kept beside the value, because Python takes 1 and True for the same key.
_Value: TypeAlias = "tuple[type, Scalar]"
_Frozen: TypeAlias = "tuple[tuple[str, type, Scalar], ...]"

# Both sides of a claim may have so many values before no clause can tell them apart.
_FORGET_AT = 2 * MAX_VALUES
_NEVER_FORGOTTEN = ("var.name",)  # there are as many as variables


@attrs.define
class Tally:
    """The examples of one candidate, over all runs."""

    _held: Counter[_Frozen] = attrs.field(factory=Counter)
    _broken: Counter[_Frozen] = attrs.field(factory=Counter)
    _values: defaultdict[str, set[_Value]] = attrs.field(factory=lambda: defaultdict(set))
    _forgotten: set[str] = attrs.field(factory=set)
    windows: set[tuple[str, Window]] = attrs.field(factory=set)  # some of those in which it held
    runs: set[str] = attrs.field(factory=set)  # in which it had an occasion

    def add(self, example: Example, run_id: str) -> None:
        """Count an example of a run."""
        key = self._freeze(example.context)
        self.runs.add(run_id)
        if not example.held:
            self._broken[key] += 1
            return
        self._held[key] += 1
        if len(self.windows) < ENOUGH_WINDOWS:
            self.windows.add((run_id, example.at.window))

    @property
    def num_positive(self) -> int:
        """How often it held."""
        return self._held.total()

    @property
    def num_negative(self) -> int:
        """How often it did not hold."""
        return self._broken.total()

    def positives(self) -> list[Context]:
        """Return the different contexts in which it held."""
        return _contexts(self._held)

    def negatives(self) -> list[Context]:
        """Return the different contexts in which it did not hold."""
        return _contexts(self._broken)

    def _freeze(self, context: Context) -> _Frozen:
        for name, value in context.items():
            if name in self._forgotten or name in _NEVER_FORGOTTEN:
                continue
            seen = self._values[name]
            seen.add((type(value), value))
            if len(seen) > _FORGET_AT:
                self._forget(name)
        return tuple(
            (name, type(value), value)
            for name, value in context.items()
            if name not in self._forgotten
        )

    def _forget(self, name: str) -> None:
        """Count contexts that differ in this property only as one."""
        self._forgotten.add(name)
        del self._values[name]
        for counts in (self._held, self._broken):
            merged: Counter[_Frozen] = Counter()
            for key, count in counts.items():
                merged[tuple(entry for entry in key if entry[0] != name)] += count
            counts.clear()
            counts.update(merged)


def _contexts(frozen: Iterable[_Frozen]) -> list[Context]:
    return [{name: value for name, _, value in each} for each in frozen]
