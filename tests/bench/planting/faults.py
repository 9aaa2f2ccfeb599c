"""Reads the faults to plant in a workload: what a person gets wrong, in the fewest lines.

A file has a section for each, whose first line names it. What follows are lines of the program:
with a minus those that it has and should not, with a plus what stands there instead. Programs run
to their end with any of them. Of some only data could tell, as of labels that are mixed up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = "== "


@attrs.frozen
class Fault:
    """A fault, and the lines of the program without it and with it."""

    name: str
    right: str
    wrong: str

    def planted_in(self, program: str) -> str:
        """Return the text of the program with the fault.

        Raises:
            ValueError: It does not have the right lines once.
        """
        if f"\n{program}".count(f"\n{self.right}") != 1:
            raise ValueError(f"the program does not have the lines of {self.name!r} once")
        return f"\n{program}".replace(f"\n{self.right}", f"\n{self.wrong}").removeprefix("\n")


def faults(workload: str) -> list[Fault]:
    """Return the faults of a workload."""
    text = (Path(__file__).parent / f"{workload}.faults").read_text()
    sections = text.removeprefix(_NAME).split(f"\n{_NAME}")
    return [_fault(*section.splitlines()) for section in sections]


def _fault(name: str, *lines: str) -> Fault:
    return Fault(name, _text(lines, " -"), _text(lines, " +"))


def _text(lines: Iterable[str], marks: str) -> str:
    return "".join(f"{line[1:]}\n" for line in lines if line[:1] and line[0] in marks)
