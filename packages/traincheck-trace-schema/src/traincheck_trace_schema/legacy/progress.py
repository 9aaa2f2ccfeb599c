"""Where in the run a record of 0.x stands: its step, stage and evaluation step, as 1.0 counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import attrs

from traincheck_trace_schema.records import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STAGES = frozenset(get_args(Stage))
_OF_EVALUATION = frozenset(("evaluation", "inference", "testing"))
_MOST_STEPS = 2**62


@attrs.define
class Progress:
    """Follows `meta_vars` from record to record. Its place never goes backwards.

    Steps of 0.x count from 1, and 0 is before the first; the same holds of its evaluation steps,
    which go on counting from one pass to the next and stay in `meta_vars` when a pass has ended.
    So one counts only while the stage is one of evaluation; a pass begins with the first that does.
    """

    step: int = -1
    eval_pass: int = 0
    eval_step: int | None = None
    stage: str = "init"
    _eval_steps: int = 0  # that were begun so far
    _pass_began: int = 0  # `_eval_steps` when the pass did

    def place(self) -> dict[str, Any]:
        """Return what every record says of where it stands."""
        place: dict[str, Any] = {"step": self.step}
        if self.eval_pass:
            place["eval_pass"] = self.eval_pass
        if self.eval_step is not None:
            place["eval_step"] = self.eval_step
        return place

    def advance(self, meta_vars: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Go to where a record stands; yield the records of what began on the way."""
        stage = meta_vars.get("stage")
        if isinstance(stage, str) and stage in _STAGES and stage != self.stage:
            self.stage = stage
            if stage not in _OF_EVALUATION:
                self.eval_step = None
            yield {"kind": "stage", "stage": stage}
        step = _count(meta_vars.get("step")) - 1
        if step > self.step:
            yield from self._begin_step(step)
        eval_steps = _count(meta_vars.get("eval_step"))
        if eval_steps > self._eval_steps:
            self._eval_steps = eval_steps
            if self.stage in _OF_EVALUATION:
                yield self._begin_eval_step()

    def _begin_step(self, step: int) -> Iterator[dict[str, Any]]:
        first = self.step + 1
        self.step, self.eval_pass, self.eval_step = first, 0, None
        if step > first:
            # It stands in a window of its own, so that it touches none that was recorded.
            what = f"step {first}" if step == first + 1 else f"steps {first} to {step - 1}"
            yield {"kind": "gap", "reason": "sampling", "count": None, "detail": what}
            self.step = step
        yield {"kind": "step", "sampled": True}

    def _begin_eval_step(self) -> dict[str, Any]:
        if self.eval_step is None:
            self.eval_pass += 1
            self._pass_began = self._eval_steps
        self.eval_step = self._eval_steps - self._pass_began
        return {"kind": "step", "sampled": True}


def _count(raw: Any) -> int:
    """Return how many steps have begun; a text or no number is none."""
    return raw if type(raw) is int and 0 <= raw < _MOST_STEPS else 0
