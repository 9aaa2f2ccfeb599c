"""Has Linux end a child when its parent dies, however that dies."""

from __future__ import annotations

import ctypes
import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def set_death_signal() -> Callable[[int], object] | None:
    """Return what a child calls with the signal that it is to get; None on other systems.

    It is looked up here, in the parent: between fork and exec nothing should be loaded.
    """
    if sys.platform != "linux":
        return None
    return partial(ctypes.CDLL(None).prctl, _SET_DEATH_SIGNAL)
