"""The marks that stand in a training program: steps, stages, tracked models.

The rewriting of a script puts them in; they may also be written by hand. Without a recording in
this process they do nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from traincheck_instrument import current

if TYPE_CHECKING:
    from collections.abc import Iterator


def start_step(*, accumulating: bool = False) -> None:
    """Begin a training step: the first statement of the training loop's body.

    Args:
        accumulating: The body is run several times for one optimizer step; a new step begins only
            if an optimizer has stepped since the last one began.
    """
    if (recorder := current.recorder()) is not None:
        recorder.start_step(accumulating=accumulating)


def start_eval_step() -> None:
    """Begin an evaluation step: the first statement of an evaluation loop's body."""
    if (recorder := current.recorder()) is not None:
        recorder.start_eval_step()


@contextmanager
def evaluation() -> Iterator[None]:
    """Surround a pass of evaluation; the stage before it is restored when it ends."""
    recorder = current.recorder()
    if recorder is None:
        yield
        return
    before = recorder.clock.stage
    recorder.enter_stage("evaluation")
    try:
        yield
    finally:
        recorder.leave_evaluation(before)


def annotate_stage(name: str) -> None:
    """Enter a stage: init, training, evaluation, inference, testing, checkpointing, ...

    One that a trace does not know is told on stderr, and not entered.
    """
    if (recorder := current.recorder()) is not None:
        recorder.enter_stage(name)


def track(model: Any, *, name: str = "model") -> Any:
    """Track the parameters of a model under `name`; return the model, unchanged.

    Anything that is not a `torch.nn.Module` is returned as it is, untracked.
    """
    if (recorder := current.recorder()) is not None:
        recorder.track(model, name)
    return model
