"""What an event says about the records before it."""

import pytest

from traincheck_relations.api import Event, Gap
from traincheck_relations.replay import replayed
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_trace_schema.reading import WindowEnd, open_run


@pytest.fixture
def trace(tmp_path):
    return TraceBuilder(tmp_path)


def events(trace, kind=None):
    trace.write()
    found = [one for one in replayed(open_run([trace.folder])) if isinstance(one, Event)]
    return [one for one in found if kind in (None, one.kind)]


def test_a_call_is_one_object_from_begin_to_end(trace):
    """Begin and end of a call, and what happens in between, speak of the same call."""
    rank = trace.rank()
    rank.function("f.specific", "f.general")
    weight = rank.variable("w", data=tensor("a"))
    with rank.call("outer"), rank.call("f.specific") as inner:
        rank.change(weight, during=inner, data=tensor("b"))

    found = events(trace)
    outer, inner_begin = (one for one in found if one.kind == "call_begin")
    inner_end, outer_end = (one for one in found if one.kind == "call_end")
    change = next(one for one in found if one.kind == "var" and one.before)
    assert inner_begin.call is inner_end.call is change.call
    assert outer.call is outer_end.call is inner_begin.call.parent
    assert inner_begin.call.documented == ("f.specific", "f.general")
    assert inner_begin.call.is_within(outer.call)
    assert not outer.call.is_within(inner_begin.call)


def test_calls_that_have_ended_are_forgotten(trace):
    """Memory is bounded by open calls, not by the length of the trace."""
    rank = trace.rank()
    for raises in (None, "ValueError"):
        with rank.call("f", raises=raises):
            pass

    last = events(trace)[-1]

    assert last.run.calls == {}


def test_a_change_adds_to_the_state_and_a_baseline_replaces_it(trace):
    """A change tells the attributes that differ; a baseline tells all there are."""
    rank = trace.rank()
    weight = rank.variable("w", data=tensor("a"), grad=None, mark=1)
    rank.change(weight, data=tensor("b"))
    rank.records.append(
        {**rank.records[-1], "event": "baseline", "attributes": {"data": tensor("c")}}
    )

    appeared, changed, baseline = events(trace, "var")

    assert appeared.before is None
    assert changed.before.attributes["data"] == tensor("a")
    assert changed.after.attributes == {"data": tensor("b"), "grad": None, "mark": 1}
    assert baseline.after.attributes == {"data": tensor("c")}


def test_lost_records_leave_nothing_that_they_may_have_changed(trace):
    """After a losing gap, open calls and states are unknown; after one of sampling they are not."""
    rank = trace.rank()
    rank.variable("w", data=tensor("a"))
    rank.gap("sampling")
    rank.observe("step_end")
    rank.gap("queue")
    rank.observe("step_end")

    trace.write()
    # The state of an event is that of the moment at which it comes.
    sampled, lost = (
        len(one.run.variables())
        for one in replayed(open_run([trace.folder]))
        if isinstance(one, Event) and one.kind == "observe"
    )

    assert (sampled, lost) == (1, 0)


def test_gaps_and_the_ends_of_windows_stand_where_they_belong(trace):
    """A gap names its window; a window ends when all ranks have left it."""
    rank = trace.rank()
    rank.step(0)
    rank.gap("queue")
    rank.step(1)
    trace.write()

    found = list(replayed(open_run([trace.folder])))

    (gap,) = [one for one in found if isinstance(one, Gap)]
    ends = [one.window.step for one in found if isinstance(one, WindowEnd)]
    assert gap.window.step == 0
    assert ends == [0, 1]


def test_a_process_has_the_rank_of_its_last_header(trace):
    """A process that learns its rank, its role and its groups late has them from there on."""
    rank = trace.rank()
    rank.records[0] = {**rank.records[0], "role": "worker"}
    rank.step(0)
    learnt = {"role": "main", "rank": 1, "world_size": 2, "groups": {"data_parallel": [1]}}
    rank.records.append({**rank.records[0], **learnt})
    rank.step(1)
    rank.gap("queue")

    trace.write()
    found = replayed(open_run([trace.folder]))
    told = [
        (one.rank, one.is_main, one.run.world())
        for one in found
        if isinstance(one, Event) and one.kind == "step"
    ]
    (gap,) = (one for one in replayed(open_run([trace.folder])) if isinstance(one, Gap))

    assert told == [
        (0, False, {"world": (0,)}),
        (1, True, {"world": (0, 1), "data_parallel": (1,)}),
    ]
    assert gap.rank == 1
