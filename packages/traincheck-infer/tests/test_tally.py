"""What is kept of the examples."""

from __future__ import annotations

import pickle
from math import isnan
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from traincheck_infer.tally import Tally, frozen
from traincheck_relations.api import Example, Position
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from traincheck_trace_schema.values import Scalar


def add(tally: Tally, *, held: bool = True, step: int = 0, **context: Scalar) -> None:
    at = Position(rank=0, window=Window(step, 0, -1), stage="training")
    tally.add(Example(param=0, held=held, context=context, at=at), frozen(context))


def tally_of(contexts: list[dict[str, Scalar]]) -> Tally:
    tally = Tally()
    for step, context in enumerate(contexts):
        add(tally, step=step, held=bool(step % 3), **context)
    return tally


def test_equal_contexts_are_kept_once_and_counted() -> None:
    """Memory grows with what differs, not with the length of the run."""
    tally = Tally()
    for step in range(100):
        add(tally, step=step, held=step % 4 > 0, stage="training")

    assert tally.positives() == tally.negatives() == [{"stage": "training"}]
    assert (tally.num_positive, tally.num_negative) == (75, 25)
    assert (tally.held.windows, tally.broken.windows) == (75, 25)


def test_many_examples_of_one_window_are_one_window() -> None:
    """All parameters of a model change in one step."""
    tally = Tally()
    for step in range(3):
        for name in "abc":
            add(tally, step=step, name=name)

    assert (tally.num_positive, tally.held.windows) == (9, 3)


def test_true_and_one_are_different_contexts_and_nan_is_one() -> None:
    """Python takes the first two for the same key, and NaN for a new one each time."""
    tally = Tally()
    for value in (True, 1, float("nan"), float("nan")):
        add(tally, x=value)

    first, second, third = (context["x"] for context in tally.positives())
    assert (first, type(first), second, type(second)) == (True, bool, 1, int)
    assert isinstance(third, float)
    assert isnan(third)


def test_a_property_with_many_values_is_forgotten() -> None:
    """Memory does not grow with a seed that differs each time; what else there is stays."""
    tally = Tally()
    for seed in range(1000):
        add(tally, seed=seed, stage="training")

    assert tally.num_positive == 1000
    assert tally.positives() == [{"stage": "training"}]
    assert tally.varying(("",)) == 0


def test_contexts_are_bounded_although_each_property_has_few_values() -> None:
    """Sixteen values of each of four properties are 65,536 contexts."""
    tally = Tally()
    for number in range(16**4):
        add(tally, a=number % 16, b=number // 16 % 16, c=number // 256 % 16, d=number // 4096)

    assert len(tally.positives()) <= 4096
    assert tally.num_positive == 16**4


def test_before_the_first_step_is_no_training() -> None:
    """What held in the set-up only is told from what held in training."""
    tally = Tally()
    add(tally, step=-1)
    add(tally, step=0, held=False)
    assert not tally.is_in_training

    add(tally, step=0)
    assert tally.is_in_training


@given(
    st.lists(
        st.lists(st.fixed_dictionaries({"few": st.booleans(), "many": st.integers(0, 40)})),
        max_size=4,
    )
)
def test_runs_may_be_merged_in_any_order(runs: list[list[dict[str, Scalar]]]) -> None:
    """What is known of several runs does not depend on which was read first, or where."""
    totals = []
    for ordered in (runs, runs[::-1]):
        total = Tally()
        for contexts in ordered:
            total.merge(pickle.loads(pickle.dumps(tally_of(contexts))))  # noqa: S301  our own
        totals.append(total)

    one, other = totals
    assert one.held.contexts == other.held.contexts
    assert one.broken.contexts == other.broken.contexts
    assert (one.held.windows, one.held.occasions) == (other.held.windows, other.held.occasions)
    assert one.varying(("",)) == other.varying(("",))
