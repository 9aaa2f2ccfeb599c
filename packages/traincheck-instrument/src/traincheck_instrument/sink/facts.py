"""The facts that later records refer to, remembered so that they can be told again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.sink.lines import Line, Record

if TYPE_CHECKING:
    from collections.abc import Iterable

# The stage holds until another one begins; of headers the last holds.
KINDS = frozenset(("header", "function", "source", "stage"))


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return records as they were made, headers first."""
    return sorted(records, key=lambda record: record.get("seq", -1))


@attrs.define
class Facts:
    """The facts of a process: as many as it has functions and lines that call them."""

    _known: dict[tuple[str, object], Record] = attrs.field(factory=dict)

    def learn(self, records: Iterable[Line]) -> None:
        """Remember the facts among records, each in place of what it replaces."""
        for one in records:
            if not isinstance(one, str) and one["kind"] in KINDS:
                self._known[one["kind"], one.get("name", one.get("id"))] = one

    def all(self) -> list[Record]:
        """Return every fact, in the order in which they were told."""
        return in_order(self._known.values())

    def header(self) -> Record | None:
        """Return the header, if it was told."""
        return self._known.get(("header", None))
