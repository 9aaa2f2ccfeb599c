"""Room on the stack for the frames of wrappers."""

from __future__ import annotations

import sys

_OWN_FRAMES = 100  # of the making of one record, at the innermost call


class RecursionLimit:
    """Raises the recursion limit, so that a program may nest its calls as deep as without us.

    Each call may have a wrapper around it: twice the frames. `install` and `uninstall` may be
    called twice.
    """

    def __init__(self) -> None:
        self._raised: tuple[int, int] | None = None  # from, to

    def install(self) -> None:
        """Raise the limit."""
        if self._raised is None:
            before = sys.getrecursionlimit()
            self._raised = before, 2 * before + _OWN_FRAMES
            sys.setrecursionlimit(self._raised[1])

    def uninstall(self) -> None:
        """Put back the limit that there was, unless the program has set one since."""
        if self._raised is not None:
            before, after = self._raised
            self._raised = None
            if sys.getrecursionlimit() == after:
                sys.setrecursionlimit(before)
