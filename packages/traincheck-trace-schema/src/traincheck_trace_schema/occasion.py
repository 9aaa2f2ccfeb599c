"""Occasions on which an invariant is judged: where they lie in a run, and what shows them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from traincheck_trace_schema.constraints import Count, Name, StepNumber
from traincheck_trace_schema.values import Json


@attrs.frozen(kw_only=True)
class Place:
    """Where something happened. `step` is the training step, -1 before the first."""

    step: StepNumber
    eval_step: Count | None = None
    stage: str
    rank: Count
    function: str | None = None
    variable: str | None = None
    source: str | None = None  # "file:line" of user code

    @property
    def when(self) -> str:
        """When that was, in words.

        >>> Place(step=3, stage="training", rank=0).when
        'step 3 (training)'
        """
        if self.step < 0:
            return f"before the first step ({self.stage})"
        evaluation = "" if self.eval_step is None else f", evaluation step {self.eval_step}"
        return f"step {self.step}{evaluation} ({self.stage})"


@attrs.frozen(kw_only=True)
class Evidence:
    """A record of the trace, and which rank wrote it into which shard."""

    rank: Count
    shard: str
    record: Mapping[str, Json]


@attrs.frozen(kw_only=True)
class Reference:
    """The first occasion on which an invariant held, in a run that it was inferred from."""

    run: Name
    at: Place
    evidence: tuple[Evidence, ...] = ()
