"""The chance model: from how many occasions on a claim is more than a coincidence.

If each occasion were the toss of a fair coin, the chance that all n of them agree would be 2^-n. An
invariant must have so many positive occasions that this is below 5 %: five of them. Occasions of
one window are likely to have one cause (all parameters of a model change in the same step), so they
must come from at least two windows, unless there is only one training step.

The same holds for the other side: of fewer than five occasions on which a claim did not hold, some
incidental fact (an argument's value, a name) sets them apart by accident.
"""

from __future__ import annotations

MAX_CHANCE = 0.05
ENOUGH_WINDOWS = 2


def is_confident(occasions: int, windows: int, steps: int) -> bool:
    """Say whether a claim that held so often is more than a coincidence.

    Args:
        occasions: How often it held.
        windows: In how many windows it did.
        steps: How many training steps were recorded.

    >>> is_confident(4, 2, 10), is_confident(5, 2, 10), is_confident(5, 1, 10)
    (False, True, False)
    """
    return is_no_accident(occasions) and windows >= min(ENOUGH_WINDOWS, steps)


def is_no_accident(occasions: int) -> bool:
    """Say whether so many occasions agree by more than accident."""
    return 2.0**-occasions < MAX_CHANCE
