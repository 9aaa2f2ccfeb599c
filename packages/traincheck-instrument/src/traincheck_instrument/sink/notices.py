"""What the sink tells the user while the program runs."""

from __future__ import annotations

import contextlib
import sys

import attrs


@attrs.define
class Notices:
    """Writes to stderr, once about each subject."""

    _told: set[str] = attrs.field(factory=set)

    def tell(self, subject: str, message: str) -> None:
        """Write a message, unless one about this subject was written."""
        if subject in self._told:
            return
        self._told.add(subject)
        # It may be closed, or of the program's own making, or none at all.
        with contextlib.suppress(Exception):
            sys.stderr.write(f"traincheck: {message}\n")
