"""Room for expressions that are nested deep: 600 terms joined by `+`, 400 chained calls."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Python 3.10 keeps each call on the C stack, at about 0.5 KiB: a half of the usual 8 MiB.
_LIMIT = 8000


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the recursion limit, for a while."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
