"""From the lines of a shard to its records, each in its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import loads, structure_record
from traincheck_trace_schema.constraints import BEYOND
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.findings import Findings
from traincheck_trace_schema.reading.form import (
    FORMS,
    SHALLOW,
    is_of_unknown_kind,
    problem_of_line,
    problem_of_text,
)
from traincheck_trace_schema.records import VERSION
from traincheck_trace_schema.strict_json import problem_of
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window, window_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ABOUT_THE_SHARD = frozenset({"header", "footer", "gap"})
_WITHOUT_WINDOW = frozenset({"header", "footer"})


@attrs.define
class StreamItem:
    """A record of a run; not to be changed.

    `process` is the index of its shard in `Run.shards`, `window` the one that it is read in.
    """

    # Not frozen: making a frozen one takes twice the time, a tenth of that of all of reading.
    process: int
    record: dict[str, Any]
    line: int
    window: Window


@attrs.define
class Placer:
    """Turns lines of one shard into records, in their order; tells `findings` of all else.

    A footer and a later header have no window; they are placed in that of the record before them.
    """

    process: int
    findings: Findings
    line: int = 1  # the number of the last line that was taken; the first is the header's
    window: Window = BEFORE_FIRST_STEP
    _step: int | None = attrs.field(init=False, default=None)  # of the window, if no evaluation
    _counts: object = attrs.field(init=False, default=None)  # what the last record said of it

    def place(
        self, lines: Iterable[bytes | None], *, is_plain: bool = False
    ) -> Iterator[StreamItem]:
        """Yield the records of the next lines; to be read to its end.

        Args:
            lines: The lines; None stands for one that is too long.
            is_plain: They are known to be ASCII, and to have no backslash.

        Raises:
            TraceError: a line is no record, and reading is strict.
        """
        # All records of all traces pass through this loop: each call in it is felt.
        process, is_strict = self.process, self.findings.is_strict
        number, window, step = self.line, self.window, self._step
        for line in lines:
            number += 1
            if line is None:
                self._refuse(number, line)
                continue
            try:
                record = loads(line)
                kind = record["kind"]
                is_sound = FORMS.get(kind, is_of_unknown_kind)(record)
            except (ValueError, TypeError, KeyError):
                is_sound = False
            if not is_sound or (
                (not is_plain or len(line) > SHALLOW) and problem_of_text(line, record)
            ):
                self._refuse(number, line)
                continue
            if kind not in _WITHOUT_WINDOW and (
                record["step"] != step or "eval_pass" in record or "eval_step" in record
            ):
                if not self._enter(record):
                    self._refuse(number, line)
                    continue
                window, step = self.window, self._step
            if (is_strict or kind in _ABOUT_THE_SHARD) and not self._take(number, line, record):
                continue
            yield StreamItem(process, record, number, window)
        self.line = number

    def _refuse(self, number: int, line: bytes | None) -> None:
        # Saying why takes long, and there may be millions.
        why = problem_of_line(line) if self.findings.is_telling else ""
        self.findings.on_malformed(number, why)

    def _enter(self, record: dict[str, Any]) -> bool:
        """Go on to the window of a record; whether it has one."""
        step, eval_pass = record["step"], record.get("eval_pass", 0)
        eval_step = record.get("eval_step")
        if type(eval_pass) is not int or (eval_step is not None and type(eval_step) is not int):
            return False  # True is equal to 1
        counts = step, eval_pass, eval_step
        if counts == self._counts:
            return True
        if not (-1 <= step < BEYOND and 0 <= eval_pass < BEYOND and 0 <= (eval_step or 0) < BEYOND):
            return False
        own = window_of(record)
        self._step = None if eval_pass or eval_step is not None else step
        is_backwards = own < self.window
        self.findings.backwards += is_backwards
        self._counts = None if is_backwards else counts
        self.window = max(self.window, own)  # if equal the same object: quick to compare
        return True

    def _take(self, number: int, line: bytes, record: dict[str, Any]) -> bool:
        """Look into a record as one that says something of the shard, or closely; is it sound?"""
        kind, findings = record["kind"], self.findings
        try:
            if findings.is_strict:
                self._insist(line, record)
            if kind in _ABOUT_THE_SHARD:
                findings.take(record)
        except TraceError as error:
            findings.on_malformed(number, str(error))
            return False
        return True

    def _insist(self, line: bytes, record: dict[str, Any]) -> None:
        if problem := problem_of(line, record):
            raise TraceError(problem)
        header = self.findings.header
        is_newer = header is not None and header.version != VERSION
        if record["kind"] in FORMS or not is_newer:
            structure_record(record)
