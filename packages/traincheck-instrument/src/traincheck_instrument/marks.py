"""The marks that stand in a training program: steps, stages, tracked models.

The rewriting of a script puts them in; they may also be written by hand. Without a recording in
this process they do nothing.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from traincheck_instrument.current import Current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_P = ParamSpec("_P")
_R = TypeVar("_R")


def start_step(*, accumulating: bool = False) -> None:
    """Begin a training step: the first statement of the training loop's body.

    Args:
        accumulating: The body is run several times for one optimizer step; a new step begins only
            if an optimizer has stepped since the last one began.
    """
    if (session := Current.session) is not None:
        session.note_step_mark()
        session.recorder.steps.start_step(accumulating=accumulating)


@overload
def training_step(body: Callable[_P, _R], /) -> Callable[_P, _R]: ...
@overload
def training_step(
    *, accumulating: bool = False
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def training_step(body: Callable[..., Any] | None = None, /, *, accumulating: bool = False) -> Any:
    """Mark a function as the body of a training step: each call of it begins one.

    ```
    @training_step
    def train_on(batch): ...
    ```

    Args:
        body: The function.
        accumulating: As in `start_step`: `@training_step(accumulating=True)`.
    """
    if body is None:
        return functools.partial(training_step, accumulating=accumulating)

    @functools.wraps(body)
    def marked(*args: Any, **kwargs: Any) -> Any:
        start_step(accumulating=accumulating)
        return body(*args, **kwargs)

    return marked


def start_eval_step() -> None:
    """Begin an evaluation step: the first statement of an evaluation loop's body."""
    if (session := Current.session) is not None:
        session.model_steps.mark_evaluation()
        session.recorder.steps.start_eval_step()


@contextmanager
def evaluation() -> Iterator[None]:
    """Surround a pass of evaluation; the stage before it is restored when it ends.

    Also a decorator, `@evaluation()`: each call of the function is a pass.
    """
    if (session := Current.session) is None:
        yield
        return
    steps = session.recorder.steps
    before = steps.clock.stage
    steps.enter_stage("evaluation")
    try:
        with session.model_steps.marked_evaluation():
            yield
    finally:
        steps.leave_evaluation(before)


def annotate_stage(name: str) -> None:
    """Enter a stage: init, training, evaluation, inference, testing, checkpointing, ...

    One that a trace does not know is told on stderr, and not entered.
    """
    if (session := Current.session) is not None:
        session.model_steps.end_evaluation()
        session.recorder.steps.enter_stage(name)


def track(model: Any, *, name: str = "model") -> Any:
    """Track the parameters of a model under `name`; return the model, unchanged.

    Anything that is not a `torch.nn.Module` is returned as it is, untracked.
    """
    if (session := Current.session) is not None:
        session.recorder.track(model, name)
        session.model_steps.track(model)
    return model
