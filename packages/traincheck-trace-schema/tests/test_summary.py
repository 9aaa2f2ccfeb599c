from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.summary import Steps, TraceSummary, summarise

if TYPE_CHECKING:
    from conftest import TraceBuilder

VAR = {"kind": "var", "role": "parameter", "type": "t", "storage": 0}
DATA = {"data": {"tensor": {"shape": [2, 3], "dtype": "int8", "device": "cpu"}}, "grad": None}


def _placed(*records: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"thread": 1, "seq": seq, "step": 0, **each} for seq, each in enumerate(records)]


def _summed_up(trace: TraceBuilder) -> TraceSummary:
    return summarise(open_run([trace.folder]))


def test_steps_are_counted_by_process_and_stage(trace: TraceBuilder) -> None:
    """Training steps with their range and how many were recorded; steps of evaluation apart."""
    stage = {"kind": "stage", "stage": "training"}
    trace.shard(
        *_placed(
            {"kind": "step", "sampled": True},
            stage,
            {"kind": "step", "step": 1, "sampled": False},
            {"kind": "step", "step": 2, "sampled": True},
            {"kind": "step", "step": 2, "eval_pass": 1, "eval_step": 0, "sampled": True},
            {"kind": "step", "step": 2, "eval_pass": 1, "eval_step": 1, "sampled": False},
        )
    )

    summary = _summed_up(trace)

    assert summary.processes[0].steps == Steps(count=3, sampled=2, first=0, last=2)
    assert (summary.processes[0].eval_steps, summary.processes[0].eval_sampled) == (2, 1)
    training = summary.lead.stages["training"]
    assert training.steps == Steps(count=2, sampled=1, first=1, last=2)
    assert (training.begun, training.eval_steps) == (1, 2)


def test_a_process_that_trains_speaks_for_the_run(trace: TraceBuilder) -> None:
    """Not the one that only started the ranks; and of these the first, which said so late."""
    trace.shard(name="trace_r0_p1.json", pid=1)
    for rank, pid in ((1, 2), (0, 3)):
        joined = trace.header(rank, pid=pid, world_size=2)
        stage = _placed({"kind": "stage", "stage": "training"})
        records = (joined, *stage, *trace.steps(*range(4 - rank)))
        trace.shard(*records, name=f"trace_r0_p{pid}.json", pid=pid, role="worker")

    summary = _summed_up(trace)

    assert [each.header.pid for each in summary.processes] == [1, 2, 3]
    assert summary.lead.header.pid == 3
    assert summary.lead.stages["training"].steps.count == 4
    assert summary.incomplete_because == ()


def test_calls_are_counted_over_all_processes(trace: TraceBuilder) -> None:
    """By function, and how many of them raised."""
    call = {"kind": "call_begin", "id": 1, "function": "f"}
    error = {"kind": "call_error", "id": 1, "function": "f", "exception": "E"}
    for rank in (0, 1):
        records = _placed(call, error, {**call, "function": "g"})
        trace.shard(*records, name=f"trace_{rank}.json", rank=rank, world_size=2)

    summary = _summed_up(trace)

    assert summary.functions == Counter(f=2, g=2)
    assert summary.errors == Counter(f=2)


def test_variables_are_counted_by_name(trace: TraceBuilder) -> None:
    """A variable of two ranks, or with two names, is one."""
    for rank in (0, 1):
        trace.shard(
            *_placed(
                {**VAR, "event": "baseline", "id": 1, "names": ["a", "tied"], "attributes": DATA},
                {**VAR, "event": "changed", "id": 1, "names": ["a", "tied"]},
                {**VAR, "event": "appeared", "id": 2, "names": ["b"], "role": "buffer"},
            ),
            name=f"trace_{rank}.json",
            rank=rank,
            world_size=2,
        )

    variables = _summed_up(trace).variables

    assert sorted(variables) == ["a", "b"]
    assert (variables["a"].shape, variables["a"].changes) == ((2, 3), 2)
    assert variables["a"].attributes == {"data", "grad"}
    assert (variables["b"].role, variables["b"].shape) == ("buffer", None)


def test_gaps_and_the_end_are_told(trace: TraceBuilder) -> None:
    """What is missing, by reason, and whether the process ended cleanly."""
    gaps = _placed(
        {"kind": "gap", "reason": "sampling", "count": 7},
        {"kind": "gap", "reason": "disk"},
        {"kind": "gap", "reason": "disk", "count": 2},
    )
    trace.write("trace_r0.json", [trace.header(), *gaps])

    summary = _summed_up(trace)

    assert summary.gaps == Counter(sampling=7, disk=3)
    assert not summary.processes[0].has_footer
    assert len(summary.incomplete_because) == 2


def test_time_is_from_header_to_footer(trace: TraceBuilder) -> None:
    """Without a footer it is to the last time that a record tells."""
    timed = _placed({"kind": "stage", "stage": "init", "t_ns": 3_000_000_002})
    trace.write("trace_a.json", [trace.header(), *timed])
    footer = {**trace.footer(), "seconds": 9}
    trace.write("trace_b.json", [trace.header(rank=1, world_size=2), *timed, footer])

    summary = _summed_up(trace)

    assert [each.seconds for each in summary.processes] == [3.0, 9]
    assert [sum(each.records.values()) for each in summary.processes] == [2, 3]
    assert all(each.size > 0 for each in summary.processes)


def test_the_cost_is_that_of_the_process_that_felt_it_most(trace: TraceBuilder) -> None:
    """A share of its time; a process that does not tell, or that took none, is passed over."""
    less, most = ({"seconds": 8, "recording_seconds": taken} for taken in (1, 2))
    for rank, times in enumerate((less, most, {"seconds": 0, "recording_seconds": 1}, {})):
        footer = {**trace.footer(), **times}
        trace.write(f"trace_{rank}.json", [trace.header(rank, world_size=4), footer])

    summary = _summed_up(trace)

    assert [each.recording_share for each in summary.processes] == [0.125, 0.25, None, None]
    assert summary.costliest is summary.processes[1]


def test_what_was_not_observed_is_told_of_all_processes(trace: TraceBuilder) -> None:
    """Functions that could not be wrapped, and what was compiled away, each once."""
    for rank in (0, 1):
        recording = {
            "mode": "full",
            "not_wrapped": {"f": "read-only"},
            "not_observed": {f"model{rank}": "compiled"},
        }
        trace.shard(name=f"trace_{rank}.json", rank=rank, world_size=2, recording=recording)

    summary = _summed_up(trace)

    assert summary.not_wrapped == {"f": "read-only"}
    assert summary.not_observed == {"model0": "compiled", "model1": "compiled"}
