"""What is kept of the examples of a candidate: in which contexts it held and did not, how often.

Memory is bounded by the number of different contexts, not by the number of examples.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_infer.confidence import ENOUGH_WINDOWS
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_relations.api import Context, Example
    from traincheck_trace_schema.values import Scalar

# The type is kept beside the value, because Python takes 1 and True for the same key.
_Frozen: TypeAlias = "tuple[tuple[str, type, Scalar], ...]"


@attrs.define
class Tally:
    """The examples of one candidate, over all runs."""

    _held: Counter[_Frozen] = attrs.field(factory=Counter)
    _broken: Counter[_Frozen] = attrs.field(factory=Counter)
    windows: set[tuple[str, Window]] = attrs.field(factory=set)  # some of those in which it held
    runs: set[str] = attrs.field(factory=set)  # in which it had an occasion

    def add(self, example: Example, run_id: str) -> None:
        """Count an example of a run."""
        key = tuple((name, type(value), value) for name, value in example.context.items())
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


def _contexts(frozen: Iterable[_Frozen]) -> list[Context]:
    return [{name: value for name, _, value in each} for each in frozen]
