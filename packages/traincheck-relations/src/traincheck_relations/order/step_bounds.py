"""Where training steps begin and end in each process, and which of them were recorded whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_relations.api import Context, Event
from traincheck_relations.conditions.properties import run_properties

if TYPE_CHECKING:
    from traincheck_relations.api import Gap

_NOT_LOST = "sampling"


def step_properties(event: Event) -> Context:
    """Return the facts on which the order and the number of calls may depend.

    How many ranks take part is none of them.
    """
    facts = run_properties(event)
    return {name: value for name, value in facts.items() if not name.startswith("rank.")}


@attrs.define(eq=False)
class StepBounds:
    """One training step of a process, as far as it was recorded."""

    begin: Event
    is_whole: bool
    has_calls: bool = False  # some call that is followed was made in it


class StepsOfProcesses:
    """Follows the `step` records of all processes."""

    def __init__(self) -> None:
        self._current: dict[int, StepBounds] = {}

    def on_step(self, event: Event) -> StepBounds | None:
        """Take a `step` record; return the step that it ends, if all of that was recorded.

        A step of evaluation ends no training step. The last step of a run has no end.
        """
        if event.record.get("eval_step") is not None or event.window.step < 0:
            return None
        ended = self._current.get(event.process)
        self._current[event.process] = StepBounds(event, event.record.get("sampled", True))
        return ended if ended is not None and ended.is_whole else None

    def current(self, process: int) -> StepBounds | None:
        """Return the training step that a process is in; None before the first."""
        return self._current.get(process)

    def spoil(self, process: int) -> None:
        """Take note that the current step can't be judged."""
        if (step := self._current.get(process)) is not None:
            step.is_whole = False

    def on_gap(self, gap: Gap) -> None:
        """Take note of missing records; what sampling left out lies before the step that tells."""
        step = self._current.get(gap.process)
        if step is not None and (gap.reason != _NOT_LOST or step.has_calls):
            step.is_whole = False
