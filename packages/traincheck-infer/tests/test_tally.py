"""What is kept of the examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_infer.tally import Tally
from traincheck_relations.api import Example, Position
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from traincheck_trace_schema.values import Scalar


def example(*, held: bool = True, step: int = 0, **context: Scalar) -> Example:
    at = Position(rank=0, window=Window(step, 0, -1), stage="training")
    return Example(param=0, held=held, context=context, at=at)


def test_equal_contexts_are_kept_once_and_counted() -> None:
    """Memory grows with what differs, not with the length of the run."""
    tally = Tally()
    for step in range(100):
        tally.add(example(step=step, held=step % 4 > 0, stage="training"), "run")

    assert tally.positives() == tally.negatives() == [{"stage": "training"}]
    assert (tally.num_positive, tally.num_negative) == (75, 25)
    assert len(tally.windows) == 2


def test_true_and_one_are_different_contexts() -> None:
    """Python takes them for the same key."""
    tally = Tally()
    tally.add(example(x=True), "run")
    tally.add(example(x=1), "run")

    assert [type(context["x"]) for context in tally.positives()] == [bool, int]


def test_the_same_window_of_two_runs_is_two_windows() -> None:
    """Two runs are two observations."""
    tally = Tally()
    tally.add(example(), "one")
    tally.add(example(), "other")

    assert len(tally.windows) == 2
    assert tally.runs == {"one", "other"}


def test_a_property_with_many_values_is_forgotten() -> None:
    """Memory does not grow with a seed that differs each time; what else there is stays."""
    tally = Tally()
    for seed in range(1000):
        tally.add(example(seed=seed, stage="training"), "run")

    assert tally.num_positive == 1000
    assert tally.positives() == [{"stage": "training"}]
