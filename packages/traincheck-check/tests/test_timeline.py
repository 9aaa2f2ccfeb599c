"""When an invariant was broken, told in a bounded size."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from traincheck_check.judging.timeline import MAX_BUCKETS, MAX_RANKS, Timelines

STEPS = st.lists(st.integers(-1, 10_000), max_size=400)


@given(STEPS)
def test_each_occasion_is_counted_in_its_stretch(steps: list[int]) -> None:
    """However wide the stretches had to become; those before the first step count as of step 0."""
    timelines = Timelines()
    for step in steps:
        timelines.add(0, step)

    if not steps:
        assert timelines.told() == ()
        return
    (told,) = timelines.told()
    expected = Counter(max(step, 0) // told.width * told.width for step in steps)
    assert {int(first): count for first, count in told.counts.items()} == expected
    assert len(told.counts) <= MAX_BUCKETS


def test_few_steps_are_told_one_by_one() -> None:
    """By rank, in their order."""
    timelines = Timelines()
    for rank, step in ((1, 3), (0, 5), (1, 2), (1, 3)):
        timelines.add(rank, step)

    assert [(each.rank, each.width, dict(each.counts)) for each in timelines.told()] == [
        (0, 1, {"5": 1}),
        (1, 1, {"2": 1, "3": 2}),
    ]


def test_the_ranks_of_a_timeline_are_bounded() -> None:
    """A world may have thousands of them."""
    timelines = Timelines()
    for rank in range(3 * MAX_RANKS):
        timelines.add(rank, 0)

    assert len(timelines.told()) == MAX_RANKS
