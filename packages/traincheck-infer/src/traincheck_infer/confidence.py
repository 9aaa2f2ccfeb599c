"""The chance model: when a claim that always held is more than a coincidence.

The null hypothesis: on each independent occasion the claim holds or not as a fair coin falls. Then
the chance that it held on all n of them is 2^-n.

*How many are independent.* Occasions of one window (a training step, an evaluation step) are likely
to have one cause: all parameters of a model change in the same step. With a correlation of one half
within a window, N occasions in w windows are worth 2Nw / (N + w) independent ones (Kish's design
effect for clusters of N/w): 5 in 5 windows are worth 5, a thousand in 2 windows less than 4.

*Many candidates.* A relation that guesses a thousand claims finds some that hold by accident. So
the claims of a relation are accepted by the procedure of Benjamini and Hochberg: of those accepted
at most 5 % are expected to be accidents. The fewer of a relation's candidates survive, the more
occasions each needs. Those with too few occasions to be accepted anyway do not count (Tarone).

*Preconditions.* An incidental fact (an argument's value, a shape) may set the occasions on which a
claim did not hold apart by accident. If it has nothing to do with the claim, the chance that it
does so is 1 : (w choose b), where of w windows b are those in which it did not hold. That, times
the number of facts that were tried, must be below 5 % too, and of b windows there must be five.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHANCE = 0.05


def independent(occasions: int, windows: int) -> float:
    """Return how many independent occasions so many, in so many windows, are worth.

    >>> independent(5, 5), independent(1000, 1)
    (5.0, 1.998001998001998)
    """
    return 2 * occasions * windows / (occasions + windows) if occasions else 0.0


def chance(occasions: int, windows: int) -> float:
    """Return how probable it is that a claim held by accident on all these occasions."""
    return float(2.0 ** -independent(occasions, windows))


def acceptable(chances: Iterable[float]) -> float:
    """Return the greatest chance of those that may be accepted, given all that were tried.

    Of the accepted at most `MAX_CHANCE` are expected to be accidents. Negative: none may.

    >>> acceptable([0.001, 0.03, 1.0]), acceptable([0.04, 1.0, 1.0])
    (0.03, -1)
    """
    ordered = sorted(chances)
    limits = (MAX_CHANCE * rank / len(ordered) for rank in range(1, len(ordered) + 1))
    return max(
        (one for one, limit in zip(ordered, limits, strict=True) if one <= limit), default=-1
    )


def is_no_accident(held: int, broken: int, facts: int) -> bool:
    """Say whether an incidental fact may set apart the windows in which a claim did not hold.

    Args:
        held: In how many windows it held.
        broken: In how many it did not; of one window both may be true.
        facts: Of how many facts it is one that was tried.
    """
    if chance(broken, broken) >= MAX_CHANCE:
        return False
    return facts / comb(held + broken, broken) < MAX_CHANCE
