"""What of two runs is compared."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from traincheck_check.comparing.result import KINDS, Kind
from traincheck_check.comparing.values import Tolerance


@attrs.frozen(kw_only=True)
class Choice:
    """What is compared: all of it by default."""

    kinds: Collection[Kind] = KINDS
    ranks: Collection[int] | None = None
    first_step: int | None = None  # the window before the first step is -1
    last_step: int | None = None
    tolerance: Tolerance = attrs.field(factory=Tolerance)

    @property
    def is_of_steps(self) -> bool:
        """Whether steps were chosen, not all of them."""
        return not (self.first_step is None and self.last_step is None)

    def has_step(self, step: int) -> bool:
        """Whether a step was chosen."""
        return (self.first_step is None or step >= self.first_step) and (
            self.last_step is None or step <= self.last_step
        )
