"""What a finished run recorded: the steps that each rank made, read from its traces."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

from traincheck_trace_schema.codec import loads

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_STEP = re.compile(rb'"kind": ?"step"')


def steps_by_rank(traces: Iterable[Path]) -> dict[int, int]:
    """Return how many training steps each rank began; a trace that is cut counts up to there."""
    steps: dict[int, int] = {}
    for path in traces:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            header = _parse(file.readline())
            if header.get("role") != "main":
                continue
            last = max((_step_of(line) for line in file if _STEP.search(line)), default=-1)
        rank = int(str(header.get("rank", 0)))
        steps[rank] = max(steps.get(rank, 0), last + 1)
    return dict(sorted(steps.items()))


def _step_of(line: bytes) -> int:
    record = _parse(line)
    is_training = record.get("eval_step") is None and record.get("kind") == "step"
    return int(str(record.get("step", -1))) if is_training else -1


def _parse(line: bytes) -> dict[str, object]:
    try:
        record = loads(line)
    except ValueError:  # the last line of a process that was killed
        return {}
    return record if isinstance(record, dict) else {}
