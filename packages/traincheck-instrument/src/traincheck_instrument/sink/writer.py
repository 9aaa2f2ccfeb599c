"""Writes batches of records to the file of a process, whatever the disk and the folder do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.sink.facts import KINDS, Facts, in_order
from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.lines import (
    Line,
    Record,
    encode_lines,
    gap,
    kind_of,
    last_gap,
    record_of,
)
from traincheck_instrument.sink.losses import Losses
from traincheck_instrument.sink.notices import Notices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@attrs.define
class Writer:
    """Keeps a file a valid trace: facts are told, and a gap stands where records are missing.

    Where a write is refused, its records are lost. Once writing works again, the facts among them
    are told, and a gap says how many others are missing. A file that was deleted, or cut, is begun
    anew, with all facts. Where the limit is reached, or the writer has a fault, the trace ends with
    a gap that says so; it is owed until it is on disk.
    """

    file: TraceFile
    limit: SizeLimit | None = None
    counts: Counter[str] = attrs.field(factory=Counter)  # records in the file, by kind
    gaps: int = 0  # how often the file says that records were lost
    _facts: Facts = attrs.field(factory=Facts)
    _losses: Losses = attrs.field(factory=Losses)
    _last: Line | None = None  # that has a place, of all that came
    _last_other: Line | None = None  # that is no fact
    _ending: Record | None = None  # the gap with which the trace ends
    _owes_ending: bool = False
    _notices: Notices = attrs.field(factory=Notices)

    @property
    def has_ended(self) -> bool:
        """Whether the trace takes no records any more."""
        return self._ending is not None

    @property
    def has_loss(self) -> bool:
        """Whether the file has to say yet that records are missing."""
        return bool(self._losses) or self._owes_ending

    def last_number(self) -> int | None:
        """Return the number of the last record in the file; None if the file lacks some."""
        if self._last is None or self.has_ended or self.has_loss:
            return None
        number: int = record_of(self._last)["seq"]
        return number

    def write(self, records: Sequence[Line]) -> None:
        """Append records, or after the end of the trace none; tell what was lost before."""
        if self._ending is not None:
            if self._owes_ending or not self.file.is_intact():
                self._write_ending(self._ending)
            return
        is_anew = not self.file.is_intact()
        lines, kinds = encode_lines([*self._told_before(is_anew=is_anew), *records])
        content = self.file.packed(lines)
        is_least = len(records) <= 1
        if self._is_admitted(len(content), is_anew=is_anew, is_least=is_least):
            self._learn(records)
            if self._put(content, kinds, is_anew=is_anew):
                self.gaps += kinds["gap"] - _count_gaps(records)
                self._losses.clear()
            else:
                self._losses.add(records)
        elif is_least:
            self._learn(records)
            self._fill()
        else:
            half = len(records) // 2
            self.write(records[:half])
            self.write(records[half:])

    def end(self, footer: Callable[[Mapping[str, int]], Record]) -> None:
        """Tell what was lost; after that, and not before, write the footer."""
        if self.has_loss or not self.file.is_intact():
            self.write(())
        is_fault = self._ending is not None and self._ending["reason"] == "fault"
        # A worker that found the folder full has no file.
        if not self.has_loss and not is_fault and self.file.is_intact():
            lines, kinds = encode_lines([footer(self.counts)])
            self._put(self.file.packed(lines), kinds, is_anew=False)

    def fail(self, what: str, error: Exception) -> None:
        """End the trace because of a fault of ours; say so on stderr, and in the trace if possible.

        Raises:
            Exception: the fault does not let the trace say so.
        """
        detail = f"{what}: {type(error).__name__}: {error}"
        self._notices.tell("fault", f"nothing more is recorded, training goes on: {detail}")
        self._end_with("fault", detail)

    def _fill(self) -> None:
        """End the trace because the limit is reached."""
        most = "" if self.limit is None else f" ({self.limit.max_bytes} bytes)"
        detail = f"the traces have reached --max-trace-size{most}"
        header = self._facts.header()
        if header is not None and header["role"] == "main":
            self._notices.tell("limit", f"{detail}: nothing more is recorded, training goes on")
        self._end_with("limit", detail)

    def _end_with(self, reason: str, detail: str) -> None:
        self._ending = last_gap(reason, record_of(self._last or {}), detail)
        self._owes_ending = True
        self._losses.facts.clear()  # nothing comes that could refer to them
        self._write_ending(self._ending)

    def _write_ending(self, ending: Record) -> None:
        """Write why the trace ends, and before that how many records the disk has cost."""
        is_anew = not self.file.is_intact()
        before = self._told_before(is_anew=is_anew)
        lines, kinds = encode_lines([*before, ending])
        content = self.file.packed(lines)
        if is_anew and not self._may_begin(len(content)):
            self._owes_ending = False
            self._losses.clear()
        elif self._put(content, kinds, is_anew=is_anew):
            self.gaps += kinds["gap"]
            self._owes_ending = False
            self._losses.clear()

    def _may_begin(self, size: int) -> bool:
        """Whether a file that only says why it ends is worth its place: that of a main process."""
        header = self._facts.header()
        if header is None or header["role"] != "main":
            return False
        return self.limit is None or self.limit.has_room(self._own_name(), size)

    def _learn(self, records: Sequence[Line]) -> None:
        """Remember what may have to be told again, and where records would be missing."""
        self._facts.learn(records)
        self._last = next((one for one in reversed(records) if "seq" in one), self._last)
        others = (one for one in reversed(records) if kind_of(one) not in KINDS)
        self._last_other = next(others, self._last_other)

    def _told_before(self, *, is_anew: bool) -> list[Record]:
        """Return what the next lines have to begin with."""
        if not is_anew:
            return in_order([*self._losses.facts, *self._losses.gaps()])
        missing = self._losses.others
        missing += sum(count for kind, count in self.counts.items() if kind not in KINDS)
        told = self._facts.all()
        if missing and self._last_other is not None:
            told.append(gap("disk", record_of(self._last_other), count=missing))
        return in_order(told)

    def _is_admitted(self, more: int, *, is_anew: bool, is_least: bool) -> bool:
        if self.limit is None:
            return True
        size = 0 if is_anew else self.file.size
        return self.limit.admits(self._own_name(), size, more, is_least=is_least)

    def _own_name(self) -> str:
        """Return the name of the file; what has it before it is begun is another process's."""
        return self.file.path.name if self.file.size else ""

    def _put(self, content: bytes, kinds: Counter[str], *, is_anew: bool) -> bool:
        """Write to the file; a refusal is told on stderr, once."""
        try:
            if is_anew:
                self.file.begin(content)
                self.counts.clear()
            else:
                self.file.append(content)
        except OSError as error:
            reason = error.strerror or str(error)
            told = f"{self.file.path} can't be written, records are lost: {reason}"
            self._notices.tell("disk", told)
            return False
        self.counts.update(kinds)
        return True


def _count_gaps(records: Sequence[Line]) -> int:
    """Count the gaps that were handed over; none of them comes as text."""
    return sum([one["kind"] == "gap" for one in records if not isinstance(one, str)])
