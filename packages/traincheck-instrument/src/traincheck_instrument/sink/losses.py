"""What a file does not say yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.sink.facts import KINDS
from traincheck_instrument.sink.lines import Line, Record, gap, kind_of, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@attrs.define
class Losses:
    """Records that could not be written and are not told yet: facts, and how many others."""

    facts: list[Record] = attrs.field(factory=list)
    others: int = 0
    _last: Line | None = None  # of the others

    def __bool__(self) -> bool:
        return bool(self.facts or self.others)

    def add(self, records: Iterable[Line]) -> None:
        """Take note that records are lost."""
        for record in records:
            if kind_of(record) in KINDS:
                self.facts.append(record_of(record))
            else:
                self.others += 1
                self._last = record

    def gaps(self) -> list[Record]:
        """Return the record that says that others are missing, if any are."""
        if not self.others:
            return []
        return [gap("disk", record_of(self._last or {}), count=self.others)]

    def clear(self) -> None:
        """Take note that all is told."""
        self.facts.clear()
        self.others = 0
