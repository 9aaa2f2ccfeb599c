"""How many occasions are more than a coincidence."""

from __future__ import annotations

import pytest

from traincheck_infer.confidence import is_confident


@pytest.mark.parametrize(("occasions", "expected"), [(0, False), (4, False), (5, True)])
def test_five_occasions_are_enough(occasions: int, expected: bool) -> None:  # noqa: FBT001
    """2^-4 is above 5 %, 2^-5 below."""
    assert is_confident(occasions, windows=2, steps=10) is expected


def test_occasions_of_one_step_are_one_observation() -> None:
    """Many parameters that change in one step say little about the next."""
    assert not is_confident(1000, windows=1, steps=10)


def test_a_run_of_one_step_is_taken_as_it_is() -> None:
    """Where only one step was recorded, there is no second one to ask for."""
    assert is_confident(5, windows=1, steps=1)
