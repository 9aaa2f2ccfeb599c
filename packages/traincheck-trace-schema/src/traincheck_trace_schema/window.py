"""Windows: the stretches of a run in which ranks are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

BEFORE_PASS = -1
AFTER_PASS = 2**62


@attrs.frozen(order=True)
class Window:
    """A stretch of a run: (training step, pass of evaluation since it began, evaluation step).

    Windows of a process never go backwards. `eval_step` is `BEFORE_PASS` in the part of a step that
    comes before its first evaluation pass, and `AFTER_PASS` in a part that follows a pass.
    """

    step: int
    eval_pass: int
    eval_step: int

    def __str__(self) -> str:
        """Name the window as a person would."""
        place = "before the first step" if self.step < 0 else f"step {self.step}"
        if self.eval_step == AFTER_PASS:
            return f"{place}, after pass {self.eval_pass} of evaluation"
        if self.eval_step == BEFORE_PASS:
            return place
        return f"{place}, step {self.eval_step} of pass {self.eval_pass} of evaluation"


BEFORE_FIRST_STEP = Window(-1, 0, BEFORE_PASS)


def window_of(record: Mapping[str, Any]) -> Window:
    """Return the window in which a record of a trace lies."""
    eval_pass = record.get("eval_pass", 0)
    eval_step = record.get("eval_step")
    if eval_step is None:
        eval_step = AFTER_PASS if eval_pass else BEFORE_PASS
    return Window(record["step"], eval_pass, eval_step)
