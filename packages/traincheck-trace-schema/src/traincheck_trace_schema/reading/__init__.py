"""Reads the trace of a run: its shards as one stream of records, in the order of windows."""

from __future__ import annotations

from traincheck_trace_schema.reading.live import LiveRun, open_live
from traincheck_trace_schema.reading.run import Run, Stream, WindowEnd, open_run, open_runs
from traincheck_trace_schema.reading.shard import Findings, Shard, StreamItem

__all__ = [
    "Findings",
    "LiveRun",
    "Run",
    "Shard",
    "Stream",
    "StreamItem",
    "WindowEnd",
    "open_live",
    "open_run",
    "open_runs",
]
