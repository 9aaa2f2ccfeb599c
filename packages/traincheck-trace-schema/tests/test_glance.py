"""A quick look at a run: what `summarise` finds, but for what is told of calls and changes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from traincheck_trace_schema.glance import glance
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.summary import summarise

if TYPE_CHECKING:
    from conftest import TraceBuilder

WHERE = {"thread": 1, "seq": 0, "step": 0}
TENSOR = {"tensor": {"shape": [2, 3], "dtype": "int8", "device": "cpu"}}
VAR = {"kind": "var", **WHERE, "role": "parameter", "type": "t", "storage": 0, "id": 1}
RECORDS: list[dict[str, Any]] = [
    {"kind": "stage", **WHERE, "stage": "training"},
    {"kind": "step", **WHERE, "sampled": True},
    {**VAR, "event": "baseline", "names": ["model.w"], "attributes": {"data": TENSOR}},
    {"kind": "call_begin", **WHERE, "id": 1, "function": "f"},
    {**VAR, "event": "changed", "names": ["model.w"], "attributes": {"data": TENSOR}},
    {"kind": "call_end", **WHERE, "id": 1, "function": "f"},
    {"kind": "step", **WHERE, "step": 1, "sampled": False},
    {"kind": "step", **WHERE, "step": 1, "eval_pass": 1, "eval_step": 0, "sampled": True},
    {"kind": "gap", **WHERE, "step": 1, "reason": "disk", "count": 3},
]


@pytest.mark.parametrize("name", ["trace_r0.json", "trace_r0.json.gz"])
def test_it_tells_what_a_whole_pass_tells(trace: TraceBuilder, name: str) -> None:
    """All but functions, errors, changes and the reader's notes; of compressed shards too."""
    trace.shard(*RECORDS, name=name, sampling={"interval": 2})
    whole = summarise(open_run([trace.folder]))

    quick = glance(open_run([trace.folder]))

    whole.functions, whole.notes, whole.incomplete_because = Counter(), (), ()
    whole.variables["model.w"].changes = 0
    assert attrs.asdict(quick) == attrs.asdict(whole)


def test_what_is_no_record_is_passed_over(trace: TraceBuilder) -> None:
    """A line that is cut, one that lacks what its kind must have, a header of another form."""
    path = trace.write("trace_r0.json", [trace.header(), *RECORDS])
    lines = ['{"kind": "step"}', '{"kind": "header", "rank": "x"}', "no JSON", '{"kind":"step","st']
    path.write_text("\n".join((path.read_text().rstrip("\n"), *lines)))

    process = glance(open_run([trace.folder])).processes[0]

    assert process.steps.count == 2
    assert process.header.rank == 0
    assert not process.has_footer


def test_the_last_header_holds_and_the_first_is_kept(trace: TraceBuilder) -> None:
    """As where the interval rose to keep below a budget."""
    risen = trace.header(sampling={"interval": 8, "budget": 5})
    trace.shard(RECORDS[0], risen, *RECORDS[1:], sampling={"interval": 1, "budget": 5})

    process = glance(open_run([trace.folder])).processes[0]

    assert process.first_header.sampling.interval == 1
    assert process.header.sampling.interval == 8
