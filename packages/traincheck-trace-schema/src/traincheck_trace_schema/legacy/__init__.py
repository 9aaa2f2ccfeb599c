"""Reads what TrainCheck 0.x wrote: its traces as shards of 1.0, its invariants as those of 1.0."""

from __future__ import annotations

from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.legacy.migration import Migration, migrate
from traincheck_trace_schema.legacy.names import documented_name
from traincheck_trace_schema.legacy.process import LegacyProcess, open_processes, why_no_record

__all__ = [
    "LegacyProcess",
    "Migration",
    "documented_name",
    "is_legacy_file",
    "migrate",
    "open_processes",
    "why_no_record",
]
