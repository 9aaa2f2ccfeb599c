"""Recognises, in what a program printed, that a port which it needs is taken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 4 * 2**20  # bytes that are looked at, at the end
# As torch says it; the port stands before the name of the error.
_TAKEN = re.compile(rb"port: (\d+)[^\n]{0,200}EADDRINUSE")


def taken_port(output: Path) -> int | None:
    """Return the port that was in use, if torch has said so."""
    try:
        with output.open("rb") as file:
            file.seek(max(output.stat().st_size - _LONGEST, 0))
            found = _TAKEN.search(file.read())
    except OSError:
        return None
    return int(found[1]) if found else None
