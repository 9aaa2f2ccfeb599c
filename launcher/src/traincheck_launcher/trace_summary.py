"""What a finished run recorded, read from its traces: steps, and if there are variables."""

from __future__ import annotations

import contextlib
import gzip
import re
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.codec import loads

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Most lines are calls, which say nothing here and need not be parsed.
_TELLING = re.compile(rb'"kind": ?"(?:step|var)"')


@attrs.frozen
class TraceSummary:
    """What there is in the traces of a run."""

    steps: dict[int, int]  # of each rank: how many training steps it began
    has_variables: bool


def summarise(traces: Iterable[Path]) -> TraceSummary:
    """Sum up the shards of the training processes; one that is cut counts up to there."""
    steps: dict[int, int] = {}
    has_variables = False
    for path in traces:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file, contextlib.suppress(EOFError):  # a cut gzip
            header = _parse(file.readline())
            if header.get("role") != "main":
                continue
            rank = int(str(header.get("rank", 0)))
            steps.setdefault(rank, 0)
            for line in filter(_TELLING.search, file):
                record = _parse(line)
                has_variables |= record.get("kind") == "var"
                steps[rank] = max(steps[rank], _begun(record))
    return TraceSummary(dict(sorted(steps.items())), has_variables)


def _begun(record: dict[str, object]) -> int:
    """Return how many training steps have begun with this record, if it begins one."""
    is_training = record.get("kind") == "step" and record.get("eval_step") is None
    return int(str(record.get("step", -1))) + 1 if is_training else 0


def _parse(line: bytes) -> dict[str, object]:
    try:
        record = loads(line)
    except ValueError:  # the last line of a process that was killed
        return {}
    return record if isinstance(record, dict) else {}
