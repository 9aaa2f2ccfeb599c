"""Writes batches of records to the file of a process, whatever the disk and the folder do."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.sink.facts import KINDS, Facts, in_order
from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.lines import Record, encode_lines, gap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@attrs.define
class Writer:
    """Keeps a file a valid trace: facts are told, and a gap stands where records are missing.

    Where a write is refused, its records are lost. Once writing works again, the facts among them
    are told, and a gap says how many others are missing. A file that was deleted, or cut, is begun
    anew, with all facts.
    """

    file: TraceFile
    limit: SizeLimit | None = None
    counts: Counter[str] = attrs.field(factory=Counter)  # records in the file, by kind
    gaps: int = 0  # how often the file says that records were lost
    is_full: bool = False  # the limit is reached: only a footer may follow
    _facts: Facts = attrs.field(factory=Facts)
    _lost_facts: list[Record] = attrs.field(factory=list)
    _lost: int = 0  # other records that are lost and not told yet
    _last: Record | None = None  # of the others
    _has_told: bool = False

    @property
    def has_loss(self) -> bool:
        """Whether records are lost that the file does not tell yet."""
        return bool(self._lost or self._lost_facts)

    def write(self, records: Sequence[Record]) -> None:
        """Append records; with none, tell what was lost."""
        is_anew = not self.file.is_intact()
        before = self._told_again(is_anew=is_anew) if is_anew or self.has_loss else []
        facts = [record for record in records if record["kind"] in KINDS]
        self._facts.learn(facts)
        self._last = next(
            (one for one in reversed(records) if one["kind"] not in KINDS), self._last
        )
        lines, kinds = encode_lines([*before, *records])
        content = self.file.packed(lines)
        if self._exceeds_limit(len(content), is_anew=is_anew):
            self._fill(is_anew=is_anew)
        elif self._put(content, kinds, is_anew=is_anew):
            if "gap" in kinds:
                self.gaps += kinds.count("gap") - sum(one["kind"] == "gap" for one in records)
            self._lost, self._lost_facts = 0, []
        else:
            self._lost_facts += facts
            self._lost += len(records) - len(facts)

    def end(self, footer: Callable[[Mapping[str, int]], Record]) -> None:
        """Tell what was lost, then write the footer of the counts of records."""
        if not self.is_full and (self.has_loss or not self.file.is_intact()):
            self.write(())
        if self.is_full or not self.has_loss:
            lines, kinds = encode_lines([footer(self.counts)])
            self._put(self.file.packed(lines), kinds, is_anew=False)

    def tell_loss(self, reason: str) -> None:
        """Say on stderr, once, that records are lost."""
        if not self._has_told:
            self._has_told = True
            self._say(f"{self.file.path} can't be written, records are lost: {reason}")

    def _learn(self, records: Sequence[Record], kinds: Sequence[str]) -> list[Record]:
        """Remember what may have to be told again; return the facts among the records."""
        self._last = next(
            (one for one in reversed(records) if one["kind"] not in KINDS), self._last
        )
        if KINDS.isdisjoint(kinds):
            return []
        facts = [one for one in records if one["kind"] in KINDS]
        self._facts.learn(facts)
        return facts

    def _told_again(self, *, is_anew: bool) -> list[Record]:
        """Return what the next lines have to begin with."""
        told = self._facts.all() if is_anew else list(self._lost_facts)
        missing = self._lost
        if is_anew:
            missing += sum(count for kind, count in self.counts.items() if kind not in KINDS)
        if missing and self._last is not None:
            told.append(gap("disk", self._last, count=missing))
        return in_order(told)

    def _exceeds_limit(self, more: int, *, is_anew: bool) -> bool:
        size = 0 if is_anew else self.file.size
        return self.limit is not None and not self.limit.admits(self.file.path, size, more)

    def _fill(self, *, is_anew: bool) -> None:
        """Write that the limit is reached; a worker that wrote nothing before writes nothing."""
        self.is_full = True
        header = self._facts.header()
        if is_anew and header["role"] != "main":
            return
        most = "" if self.limit is None else f" ({self.limit.max_bytes} bytes)"
        detail = f"the traces have reached --max-trace-size{most}"
        told = gap("limit", self._last or {}, count=None, detail=detail)
        lines, kinds = encode_lines([header, told] if is_anew else [told])
        self._put(self.file.packed(lines), kinds, is_anew=is_anew)
        if header["role"] == "main":
            self._say(f"{detail}: nothing more is recorded, training goes on")

    def _put(self, content: bytes, kinds: Sequence[str], *, is_anew: bool) -> bool:
        """Write to the file; a refusal is told on stderr, once."""
        try:
            if is_anew:
                self.file.begin(content)
                self.counts.clear()
            else:
                self.file.append(content)
        except OSError as error:
            self.tell_loss(error.strerror or str(error))
            return False
        self.counts.update(kinds)
        return True

    def _say(self, message: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"traincheck: {message}\n")
