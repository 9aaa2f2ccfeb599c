"""Training steps as a whole: what changed in each, and whether that can be judged.

A step can be judged if an optimizer stepped in it, nothing of it is missing, and the next one has
begun: the last step of a run may have ended anywhere.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.api import Event
from traincheck_relations.order.protocol import OPTIMIZER_STEP

if TYPE_CHECKING:
    from traincheck_relations.api import Gap

KINDS = frozenset(("step", "stage", "var", "observe", "call_end"))
FUNCTIONS = frozenset((OPTIMIZER_STEP,))


@attrs.define(eq=False)
class TrainingStep:
    """What was seen of one training step of one process."""

    number: int
    is_adjacent: bool  # the step before it was recorded, too
    has_stepped: bool = False
    has_evaluated: bool = False
    changed: set[int] = attrs.field(factory=set)  # variables whose data or flag changed
    appeared: set[int] = attrs.field(factory=set)
    end: Event | None = None  # the last look at it
    looked: set[tuple[str, str]] = attrs.field(factory=set)  # at which roles and attributes

    @property
    def has_begun(self) -> bool:
        """Whether something of it was seen."""
        return self.has_stepped or self.has_evaluated or self.end is not None

    @property
    def is_whole(self) -> bool:
        """Whether training happened in it, and its end was looked at."""
        return self.has_stepped and self.end is not None


class TrainingSteps:
    """Follows the training steps of all main processes."""

    def __init__(self) -> None:
        self._open: dict[int, TrainingStep] = {}
        self._last: dict[int, int] = {}  # the number of the last step that nothing is missing of

    def on_event(self, event: Event) -> TrainingStep | None:
        """Take the next event of `KINDS`; return the step that it ends, if it can be judged."""
        if not event.is_main:
            return None
        if event.kind == "step":
            return self._on_step(event)
        step = self._open.get(event.process)
        if step is not None:
            self._note(step, event)
        return None

    def current(self, event: Event) -> TrainingStep | None:
        """Return the step that a process is in."""
        return self._open.get(event.process)

    def on_gap(self, gap: Gap) -> None:
        """Give up the step in which records are missing.

        What sampling left out is told when a step begins that is recorded again: it lies before.
        """
        step = self._open.get(gap.process)
        if step is not None and gap.reason == "sampling" and not step.has_begun:
            return
        self._open.pop(gap.process, None)
        self._last.pop(gap.process, None)

    def _on_step(self, event: Event) -> TrainingStep | None:
        if event.record.get("eval_step") is not None:
            if (step := self._open.get(event.process)) is not None:
                step.has_evaluated = True
            return None
        ended = self._open.pop(event.process, None)
        if event.record.get("sampled", True):
            number = event.window.step
            is_adjacent = self._last.get(event.process) == number - 1
            self._open[event.process] = TrainingStep(number, is_adjacent)
            self._last[event.process] = number
        else:
            self._last.pop(event.process, None)
        return ended if ended is not None and ended.is_whole else None

    @staticmethod
    def _note(step: TrainingStep, event: Event) -> None:
        if event.kind == "stage":
            step.has_evaluated |= event.stage not in {"training", "init"}
        elif event.kind == "call_end":
            step.has_stepped = True
        elif event.kind == "observe":
            if event.record["phase"] == "step_end":
                step.end = event
                step.looked.update(product(event.record["roles"], event.record["attributes"]))
        elif event.record["event"] == "changed":
            if not {"data", "training"}.isdisjoint(event.record.get("attributes", ())):
                step.changed.add(event.record["id"])
        elif event.record["event"] == "appeared":
            step.appeared.add(event.record["id"])
