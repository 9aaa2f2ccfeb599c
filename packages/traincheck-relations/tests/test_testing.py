"""The builder of traces writes what a recorder would write."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.reading import open_runs

if TYPE_CHECKING:
    from pathlib import Path


def everything(trace: TraceBuilder) -> None:
    """Add each kind of record at least once."""
    for number in range(trace.world_size):
        rank = trace.rank(number)
        train(rank, 2, unused=["model.unused"])
        with rank.call("torch.relu", {"input": 1}, raises="ValueError"):
            rank.gap("disk", 3)
        rank.stage("evaluation")
        rank.eval_step(0)


def test_every_record_follows_the_schema(tmp_path: Path) -> None:
    """A test that passes on a trace no recorder could write proves nothing."""
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    schema = files("traincheck_trace_schema") / "schemas" / "trace" / "1.0.schema.json"
    validator = jsonschema_rs.validator_for(json.loads(schema.read_text()))
    trace = TraceBuilder(tmp_path, world_size=2)
    everything(trace)

    trace.write()

    for path in tmp_path.iterdir():
        for line in path.read_text().splitlines():
            validator.validate(json.loads(line))


@pytest.mark.parametrize("complete", [True, False])
def test_a_run_can_end_or_break_off(tmp_path: Path, complete: bool) -> None:  # noqa: FBT001
    """Without a footer, the reader takes the trace for incomplete."""
    trace = TraceBuilder(tmp_path)
    train(trace.rank(), 1)
    trace.write(complete=complete)
    (run,) = open_runs([tmp_path])

    list(run.stream())

    assert (run.incomplete_because() == ()) is complete


def test_a_call_inside_another_names_it(tmp_path: Path) -> None:
    """Nesting follows the blocks of the test."""
    rank = TraceBuilder(tmp_path).rank()
    with rank.call("outer") as outer, rank.call("inner"):
        pass

    parents = {
        record["function"]: record["parent"]
        for record in rank.records
        if record["kind"] == "call_begin"
    }
    assert parents == {"outer": None, "inner": outer}
