"""The chance model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_infer.confidence import MAX_CHANCE, acceptable, chance, is_no_accident

CHANCES = st.lists(st.floats(0, 1), max_size=20)


@pytest.mark.parametrize(
    ("occasions", "windows", "is_enough"),
    [(0, 0, False), (4, 4, False), (5, 5, True), (20, 2, False), (20, 4, True)],
)
def test_occasions_of_one_window_are_worth_little(
    occasions: int,
    windows: int,
    is_enough: bool,  # noqa: FBT001
) -> None:
    """Five steps are enough; of two steps, many parameters are not."""
    assert (chance(occasions, windows) < MAX_CHANCE) is is_enough


@given(st.integers(1, 10**6))
def test_one_window_is_never_enough(occasions: int) -> None:
    """However many parameters change in it, they may have one cause."""
    assert chance(occasions, 1) > 0.25


def test_more_candidates_ask_for_more_occasions() -> None:
    """What five steps teach is believed if most guesses hold, and not if one of many does."""
    five = chance(5, 5)

    assert acceptable([five, five, five, 1.0]) == five
    assert acceptable([five, *[1.0] * 9]) < 0
    assert acceptable([chance(10, 10), *[1.0] * 9]) == chance(10, 10)


@given(CHANCES)
def test_few_of_those_accepted_are_expected_to_be_accidents(chances: list[float]) -> None:
    """Of m guesses, m times the limit come so far by accident: at most 5 % of the accepted."""
    limit = acceptable(chances)

    accepted = sum(one <= limit for one in chances)
    assert limit * len(chances) <= MAX_CHANCE * accepted * (1 + 1e-9)


@pytest.mark.parametrize(
    ("held", "broken", "facts", "expected"),
    [
        (30, 4, 1, False),  # four windows may agree in something by accident
        (5, 5, 3, True),
        (5, 5, 20, False),  # of twenty facts one may separate by accident
        (30, 30, 20, True),
    ],
)
def test_an_incidental_fact_must_be_no_accident(
    held: int,
    broken: int,
    facts: int,
    expected: bool,  # noqa: FBT001
) -> None:
    """The fewer windows and the more facts, the likelier is it that one separates by accident."""
    assert is_no_accident(held, broken, facts) is expected
