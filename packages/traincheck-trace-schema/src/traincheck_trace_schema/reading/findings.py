"""What reading a shard found out about it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.records import Header

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOLD = 5  # malformed lines of a shard that are told one by one
_MOST_RANKS = 2**20  # of a world: readers count through it
# Reasons of a gap that loses records; sampling loses nothing.
_LOSING = ("disk", "queue", "encoding", "fault", "limit")


@attrs.define(kw_only=True)
class Findings:
    """What reading a shard found out about it.

    With `is_strict`, the first line that is no record is a `TraceError`.
    """

    path: Path
    header: Header | None = None  # the last one
    is_strict: bool = False
    has_footer: bool = False
    missing: Counter[str] = attrs.field(factory=Counter)  # reason: records, at least
    malformed: int = 0
    backwards: int = 0
    given_up: str = ""  # why the rest was not read
    notes: list[str] = attrs.field(factory=list)
    is_cut: bool = False  # the last line is not whole
    _untold: int = 0  # malformed lines that are not in the notes

    @property
    def is_telling(self) -> bool:
        """Whether the next malformed line will be told, so that why it is matters."""
        return self.is_strict or self.malformed < _TOLD

    def of_file(self, path: Path) -> Findings:
        """Return findings for one file of several that make a shard; `add` them when it is read."""
        return Findings(path=path, header=self.header, is_strict=self.is_strict)

    def add(self, other: Findings) -> None:
        """Take what was found out about one file of several."""
        self.missing += other.missing
        self.malformed += other.malformed
        self.backwards += other.backwards
        self.given_up = self.given_up or other.given_up
        self.is_cut = self.is_cut or other.is_cut
        self.notes += other.told()

    def take(self, record: dict[str, Any]) -> None:
        """Take a header, a footer or a gap.

        Raises:
            TraceError: it is a header with a wrong field.
        """
        kind = record["kind"]
        if kind == "header":
            self.header = read_header(record)
        elif kind == "footer":
            self.has_footer = True
        else:
            count = record.get("count")
            self.missing[record["reason"]] += count if type(count) is int else 1

    def on_malformed(self, number: int, why: str) -> None:
        """Count a line that is no record.

        Raises:
            TraceError: reading is strict.
        """
        if self.is_strict:
            raise TraceError(f"{self.path}:{number}: {why}")
        self.malformed += 1
        if self.malformed > _TOLD:
            self._untold += 1
        else:
            self.notes.append(f"{self.path}:{number}: skipped: {why}")

    def on_cut(self, number: int) -> None:
        """Tell of a last line that is not whole."""
        self.is_cut = True
        self.notes.append(f"{self.path}:{number}: the last line is cut and was left out")

    def give_up(self, why: str) -> None:
        """Tell that the rest of the shard is not read.

        Raises:
            TraceError: reading is strict.
        """
        if self.is_strict:
            raise TraceError(why)
        self.given_up = why
        self.notes.append(f"{why}; what follows was left out")

    def told(self) -> Iterator[str]:
        """Yield what was skipped, and what else a person should know."""
        yield from self.notes
        if self._untold:
            yield f"{self.path}: {self._untold} more lines were skipped, they are no records"
        if self.backwards:
            yield (
                f"{self.path}: records that come after one of a later window: {self.backwards}; "
                "they were read as part of that window"
            )

    def losses(self) -> Iterator[str]:
        """Yield why the shard is not all that happened in its process."""
        name = self.path.name
        if self.given_up:
            yield f"{name}: was not read to its end"
        elif self.header and self.header.role == "main" and not self.has_footer:
            yield f"{name}: rank {self.header.rank} did not end cleanly, there is no footer"
        for reason in _LOSING:
            if count := self.missing[reason]:
                yield f"{name}: at least {count} records were lost ({reason})"
        if self.malformed:
            yield f"{name}: lines that are no records: {self.malformed}"


def read_header(raw: dict[str, Any], *, where: str = "") -> Header:
    """Make the object of a header of a known version.

    Raises:
        TraceError: a field is wrong.
    """
    header = structure(Header, raw, where=where)
    if not 0 < header.world_size <= _MOST_RANKS:
        place = f"{where}: " if where else ""
        raise TraceError(
            f"{place}field 'world_size' must be an integer from 1 to {_MOST_RANKS}, "
            f"got {header.world_size}"
        )
    return header
