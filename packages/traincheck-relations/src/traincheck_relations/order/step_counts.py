"""Counts the calls of functions in each training step that was recorded whole."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.api import Event
from traincheck_relations.order.protocol import BACKWARD, OPTIMIZER_STEP, owner_of
from traincheck_relations.order.step_bounds import StepsOfProcesses
from traincheck_relations.order.turns import CALL_KINDS, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from traincheck_relations.api import Call, Gap

KINDS = CALL_KINDS | {"step"}
# Without either there was no training in a step: a batch may have been left out.
TRAINING = (BACKWARD, OPTIMIZER_STEP)


@attrs.define(eq=False)
class StepCounts:
    """How often functions were called in one step of a process, by the object they are about."""

    begin: Event
    counts: defaultdict[str, Counter[str | None]] = attrs.field(
        factory=lambda: defaultdict(Counter)
    )

    def of(self, function: str) -> int:
        """Return how often a function was called in all."""
        return self.counts[function].total() if function in self.counts else 0

    def by(self, function: str, owner: str | None) -> int:
        """Return how often a function was called about one object."""
        return self.counts[function][owner] if function in self.counts else 0

    def can_judge(self, *functions: str) -> bool:
        """Whether there was training in the step, whatever is claimed of these functions."""
        return any(self.of(each) for each in TRAINING if each not in functions)

    def owners(self, function: str) -> Collection[str | None]:
        """Return the objects that calls of a function were about; None: calls about none."""
        return self.counts[function].keys() if function in self.counts else ()


class StepCounter:
    """Follows all main processes. A step in which a call raised is not judged."""

    def __init__(self, functions_of: Callable[[Call], tuple[str, ...]]) -> None:
        self._turns = Turns(functions_of)
        self._steps = StepsOfProcesses()
        self._counts: dict[int, StepCounts] = {}

    def on_event(self, event: Event) -> StepCounts | None:
        """Take the next event of `KINDS`; return the step that it ends, if that can be judged."""
        if not event.is_main:
            return None
        if event.kind == "step":
            if event.record.get("eval_step") is not None or event.window.step < 0:
                return None
            ended = self._steps.on_step(event)
            counts = self._counts.pop(event.process, None)
            self._counts[event.process] = StepCounts(event)
            return counts if ended is not None else None
        functions = self._turns.take(event)
        if event.kind == "call_begin":
            self._count(event, functions)
        elif event.kind == "call_error" and functions:
            self._steps.spoil(event.process)
        return None

    def on_gap(self, gap: Gap) -> None:
        """Take note that records are missing."""
        self._steps.on_gap(gap)
        self._turns.forget(gap.process)

    def _count(self, event: Event, functions: tuple[str, ...]) -> None:
        """Count turns that begin; what is called during an evaluation is no part of the step."""
        step = self._counts.get(event.process)
        if step is None or event.call is None or not functions:
            return
        if (bounds := self._steps.current(event.process)) is not None:
            bounds.has_calls = True
        if event.stage != step.begin.stage:
            return
        owner = owner_of(event.call)
        for function in functions:
            step.counts[function][owner] += 1
