"""Builders that the tests of this package share."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from traincheck_trace_schema.codec import dumps
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_PASS, Window

if TYPE_CHECKING:
    from collections.abc import Sequence


def _header(rank: int, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "header",
        "schema": "traincheck.trace",
        "version": "1.0",
        "run_id": "run",
        "host": "here",
        "pid": 4000 + rank,
        "role": "main",
        "rank": rank,
        "local_rank": rank,
        "world_size": 1,
        "clock": {"wall_ns": 1, "monotonic_ns": 2},
        "recording": {"mode": "full"},
        **fields,
    }


def _record(seq: int, window: Window) -> dict[str, Any]:
    record = {"kind": "step", "thread": 1, "seq": seq, "step": window.step, "sampled": True}
    if window.eval_pass:
        record["eval_pass"] = window.eval_pass
    if window.eval_step not in {BEFORE_PASS, AFTER_PASS}:
        record["eval_step"] = window.eval_step
    return record


@attrs.frozen
class TraceBuilder:
    """Writes shards into a folder."""

    folder: Path

    def header(self, rank: int = 0, **fields: Any) -> dict[str, Any]:
        """Return a header with everything that must stand in it."""
        return _header(rank, **fields)

    def footer(self) -> dict[str, Any]:
        """Return a footer."""
        return {"kind": "footer", "records": {}}

    def steps(self, *steps: int) -> list[dict[str, Any]]:
        """Return a record for each training step."""
        return self.windows([Window(step, 0, BEFORE_PASS) for step in steps])

    def windows(self, windows: Sequence[Window]) -> list[dict[str, Any]]:
        """Return a record in each window."""
        return [_record(seq, window) for seq, window in enumerate(windows)]

    def shard(
        self, *records: dict[str, Any], name: str = "trace_r0.json", rank: int = 0, **header: Any
    ) -> Path:
        """Write a shard that ended cleanly."""
        return self.write(name, [self.header(rank, **header), *records, self.footer()])

    def write(self, name: str, records: Sequence[dict[str, Any]]) -> Path:
        """Write records, one a line, as they are."""
        content = "".join(f"{dumps(record)}\n" for record in records).encode()
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    def append(self, name: str, *records: dict[str, Any]) -> Path:
        """Add records to a shard that is not compressed, as its process does while it runs."""
        path = self.folder / name
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{dumps(record)}\n" for record in records)
        return path


@attrs.define
class Clock:
    """A clock that stands still until it is set."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trace(tmp_path: Path) -> TraceBuilder:
    return TraceBuilder(tmp_path)
