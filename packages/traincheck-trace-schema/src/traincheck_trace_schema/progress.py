"""How far a check has come that follows a run (document `traincheck.progress`)."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from traincheck_trace_schema.constraints import Count, Name, StepNumber, Version1

SCHEMA: Final = "traincheck.progress"
VERSION: Final = "1.0"


@attrs.frozen(kw_only=True)
class JudgedProcess:
    """A process of the run, and how much of what it told was judged.

    `seq` is the number of the last record that was judged, and `step` its training step. Of the
    `size` bytes that its file had, all was judged but for what waits for other ranks.
    """

    shard: Name  # the name of its file
    rank: Count
    restart: Count = 0
    size: Count
    seq: StepNumber = -1
    step: StepNumber = -1
    ended: bool = False  # cleanly


@attrs.frozen(kw_only=True)
class Progress:
    """How far a check has come; written anew whenever something in it has changed."""

    schema: Literal["traincheck.progress"] = SCHEMA
    version: Version1 = VERSION
    run_id: str | None = None
    host: str  # where the process that checks runs
    pid: Count
    beat: Count  # how often this was written before: at least every second
    running: bool
    violations: Count = 0
    fails: bool = False  # what was found makes the check fail
    awaited: tuple[Count, ...] = ()  # ranks that hold the stretch that is being judged open
    processes: tuple[JudgedProcess, ...] = ()
