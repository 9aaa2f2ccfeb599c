"""Traces of small runs that train well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from traincheck_relations.testing import TraceBuilder, train

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class WriteRun(Protocol):
    def __call__(
        self, name: str = ..., steps: int = ..., *, unused: Sequence[str] = ...
    ) -> Path: ...


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Return a function that writes the trace of a run; its name is run id and folder."""

    def write(name: str = "good", steps: int = 6, *, unused: Sequence[str] = ()) -> Path:
        trace = TraceBuilder(tmp_path / name, run_id=name)
        train(trace.rank(), steps, unused=unused)
        return trace.write().parent

    return write
