"""Turns the records of a process of 0.x, in order, into those of a shard of 1.0."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.legacy.calls import Calls
from traincheck_trace_schema.legacy.detection import PRE, STATE
from traincheck_trace_schema.legacy.progress import Progress
from traincheck_trace_schema.legacy.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_trace_schema.legacy.source import Lost


@attrs.define
class Conversion:
    """What is known of a process so far; bounded by open calls, live variables and threads."""

    calls: Calls = attrs.field(factory=Calls)
    _progress: Progress = attrs.field(factory=Progress)
    _variables: Variables = attrs.field(factory=Variables)
    _threads: dict[int, int] = attrs.field(factory=dict)
    _calling: int | None = None  # the thread that made the first call
    _last: int = 0  # the thread of the last record
    _written: Counter[str] = attrs.field(factory=lambda: Counter(header=1))
    _seq: int = 0

    def convert(self, raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the records that one of 0.x becomes: what began before it, and itself."""
        thread = self._threads.setdefault(raw["thread_id"], len(self._threads))
        self._last = thread
        for began in self._progress.advance(raw["meta_vars"]):
            if began["kind"] == "gap":
                self._variables.on_gap()
            yield self._placed(thread, began, raw["time"])
        for record in self._converted(thread, raw):
            yield self._placed(thread, record, None)

    def lose(self, lost: Lost) -> dict[str, Any]:
        """Return the gap that stands for what can't be read here."""
        self._variables.on_gap()
        reason = "encoding" if lost.count is not None and not lost.is_cut else "disk"
        gap = {"kind": "gap", "reason": reason, "count": lost.count, "detail": lost.detail}
        return self._placed(self._last, gap, None)

    def has_ended(self) -> bool:
        """Whether the thread that made the first call has ended all its calls."""
        return self._calling is None or not self.calls.is_open(self._calling)

    def footer(self) -> dict[str, Any]:
        """Return the footer that fits the records so far."""
        return {"kind": "footer", "records": dict(self._written), "gaps": self._written["gap"]}

    def _converted(self, thread: int, raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if raw["type"] == STATE:
            return self._variables.tell(raw, self._seq)
        if raw["type"] == PRE:
            if self._calling is None:
                self._calling = thread
            return self.calls.begin(thread, raw)
        return self.calls.end(thread, raw)

    def _placed(self, thread: int, record: dict[str, Any], time: int | None) -> dict[str, Any]:
        """Say of a record where it stands; of a step and a stage, when it began."""
        placed = {
            "kind": record.pop("kind"),
            "thread": thread,
            "seq": self._seq,
            **self._progress.place(),
            **record,
        }
        if time is not None and placed["kind"] != "gap":
            placed["t_ns"] = time
        self._seq += 1
        self._written[placed["kind"]] += 1
        return placed
