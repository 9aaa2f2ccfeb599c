"""What is in the trace of a run, as far as it can be told without parsing its calls."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.legacy.process import LegacyProcess
from traincheck_trace_schema.reading.form import FORMS
from traincheck_trace_schema.reading.lines import LineReader
from traincheck_trace_schema.summary import Tally, summarise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from traincheck_trace_schema.reading import Run
    from traincheck_trace_schema.summary import TraceSummary

_KIND: Final = re.compile(rb'\s*\{"kind":\s*"(\w+)"')  # as all that we write begins
_TELLING: Final = frozenset((b"header", b"stage", b"step", b"var", b"gap", b"footer"))
_CHANGED: Final = b'"event":"changed"'


def glance(run: Run) -> TraceSummary:
    """Sum up a run in a third of the time of `summarise`, or less; that counts calls, too.

    Of what makes up most of a trace, calls, observations and changes of variables, only the number
    of records is told: `functions`, `errors` and `changes` are empty, and so are the notes and why
    a trace is incomplete. A line that is no record is passed over.

    Raises:
        TraceError: a file of the run cannot be read.
    """
    if any(isinstance(shard, LegacyProcess) for shard in run.shards):
        return summarise(run)
    tally = Tally(run)
    for process, shard in enumerate(run.shards):
        records = tally.summary.processes[process].records
        for kind, line in _lines(shard.path):
            record = _record(line) if _is_telling(kind, line) else None
            if record is None:
                records[kind.decode()] += 1
                continue
            with contextlib.suppress(TraceError):  # a header of a form that is not known
                tally.take(record, process)
    return tally.summary


def _lines(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines that may be records, each with its kind."""
    reader = LineReader(path)
    while (lines := reader.read()) is not None:
        for line in lines:
            if line is not None and (match := _KIND.match(line)):
                yield match[1], line


def _is_telling(kind: bytes, line: bytes) -> bool:
    return kind in _TELLING and not (kind == b"var" and _CHANGED in line)


def _record(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None if it is none."""
    try:
        record: dict[str, Any] = loads(line)
        return record if FORMS[record["kind"]](record) else None
    except (ValueError, TypeError, KeyError):
        return None
