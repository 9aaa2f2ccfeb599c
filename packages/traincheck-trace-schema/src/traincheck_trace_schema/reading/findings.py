"""What reading a shard found out about it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.records import Header

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOLD = 5  # malformed lines of a shard that are told one by one
# Reasons of a gap that loses records; sampling loses nothing.
_LOSING = ("disk", "queue", "encoding", "fault", "limit")
# What a header says under `versions` of a trace that TrainCheck 0.x recorded, migrated or not.
RECORDED_BY_0_X: Final = {"traincheck": "0.x"}
_OF_0_X = (
    "is a trace of TrainCheck 0.x, which did not look at all variables at one point, and kept of a "
    "tensor its first row: what must change in a call, or be equal on all ranks, is not judged"
)


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
    _files: list[Findings] = attrs.field(factory=list)  # if several make the shard

    @property
    def is_telling(self) -> bool:
        """Whether the next malformed line will be told, so that why it is matters."""
        return self.is_strict or self.malformed < _TOLD

    def of_file(self, path: Path) -> Findings:
        """Return findings for one file of several that make a shard; `add` them when it is read."""
        return Findings(path=path, header=self.header, is_strict=self.is_strict)

    def add(self, other: Findings) -> None:
        """Take what was found out about one file of several."""
        self.given_up = self.given_up or other.given_up
        self.is_cut = self.is_cut or other.is_cut
        self._files.append(other)

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
        if self.header and self.header.versions == RECORDED_BY_0_X:
            yield f"{self.path.parent}: {_OF_0_X}"
        for file in self._files:
            yield from file._told_of_lines()  # noqa: SLF001  of its own class
        yield from self._told_of_lines()

    def _told_of_lines(self) -> Iterator[str]:
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
        files = self._files or [self]
        yield from (f"{one.path.name}: was not read to its end" for one in files if one.given_up)
        is_main = self.header is not None and self.header.role == "main"
        if self.header and is_main and not (self.has_footer or self.given_up):
            yield f"{name}: rank {self.header.rank} did not end cleanly, there is no footer"
        for reason in _LOSING:
            if count := self.missing[reason]:
                what = "record was" if count == 1 else "records were"
                yield f"{name}: at least {count} {what} lost ({reason})"
        for one in files:
            if one.malformed:
                yield f"{one.path.name}: lines that are no records: {one.malformed}"


def read_header(raw: dict[str, Any], *, where: str = "") -> Header:
    """Make the object of a header of a known version.

    Raises:
        TraceError: a field is wrong.
    """
    return structure(Header, raw, where=where)
