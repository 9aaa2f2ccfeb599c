"""Which ranks took part in a window, and which restarts are no absence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.reading import Run, WindowEnd, open_run

if TYPE_CHECKING:
    from conftest import TraceBuilder


def _without(run: Run) -> dict[int, tuple[int, ...]]:
    """Return by step who was absent."""
    ends = (item for item in run.stream() if isinstance(item, WindowEnd))
    return {end.window.step: end.without for end in ends}


def _died(trace: TraceBuilder, rank: int, *steps: int, **header: Any) -> None:
    """Write a main shard that has no footer."""
    name = f"trace_r{rank}_{header.get('restart', 0)}.json"
    trace.write(name, [trace.header(rank, **header), *trace.steps(*steps)])


def test_all_ranks_take_part_as_a_rule(trace: TraceBuilder) -> None:
    """A rank that ended cleanly is not missed in the windows of those that go on."""
    trace.shard(*trace.steps(0, 1, 2), rank=0, world_size=2)
    trace.shard(*trace.steps(0), rank=1, world_size=2, name="trace_r1.json")

    assert _without(open_run([trace.folder])) == {0: (), 1: (), 2: ()}


def test_a_rank_that_died_is_absent_from_that_window_on(trace: TraceBuilder) -> None:
    """It took no part to the end in the window in which it died."""
    trace.shard(*trace.steps(0, 1, 2), rank=0, world_size=2)
    _died(trace, 1, 0, 1, world_size=2)

    assert _without(open_run([trace.folder])) == {0: (), 1: (1,), 2: (1,)}


def test_a_rank_that_left_no_trace_is_absent_everywhere(trace: TraceBuilder) -> None:
    """The world is as large as the headers say; a worker stands for no rank."""
    trace.shard(*trace.steps(0, 1), rank=0, world_size=3)
    trace.shard(*trace.steps(0), rank=1, role="worker", name="trace_w.json")

    run = open_run([trace.folder])

    assert _without(run) == {0: (1, 2), 1: (1, 2)}
    assert run.incomplete_because() == ("ranks 1, 2 of 3 left no trace",)


def test_a_worker_that_died_is_no_absence(trace: TraceBuilder) -> None:
    """Its rank goes on."""
    trace.shard(*trace.steps(0, 1, 2))
    trace.write("trace_w.json", [trace.header(role="worker"), *trace.steps(0)])

    assert set(_without(open_run([trace.folder])).values()) == {()}


def test_a_rank_that_was_restarted_is_not_absent(trace: TraceBuilder) -> None:
    """The shard of its restart follows; who was not restarted is missed from its death on."""
    _died(trace, 0, 0, 1, world_size=2)
    _died(trace, 1, 0, 1, world_size=2)
    trace.shard(*trace.steps(2, 3), rank=0, world_size=2, restart=1)

    assert _without(open_run([trace.folder])) == {0: (), 1: (1,), 2: (1,), 3: (1,)}


def test_a_world_that_shrank_misses_nobody(trace: TraceBuilder) -> None:
    """The processes of the last restart say how large it is."""
    for rank in range(3):
        _died(trace, rank, 0, world_size=3)
    for rank in range(2):
        trace.shard(
            *trace.steps(1), rank=rank, world_size=2, restart=1, name=f"trace_again{rank}.json"
        )

    assert _without(open_run([trace.folder])) == {0: (), 1: ()}


def test_a_rank_that_is_learnt_late_counts_from_the_window_on(trace: TraceBuilder) -> None:
    """A header that is repeated says who the process is."""
    late = trace.header(rank=1, world_size=2)
    trace.shard(*trace.steps(0), rank=0, world_size=2)
    trace.write("trace_r1.json", [trace.header(rank=0), late, *trace.steps(0, 1), trace.footer()])

    assert _without(open_run([trace.folder])) == {-1: (), 0: (), 1: ()}


def test_absent_ranks_are_summed_up(trace: TraceBuilder) -> None:
    """However large a world a header claims, messages stay short."""
    trace.shard(*trace.steps(0), world_size=2**20)

    run = open_run([trace.folder])

    assert len(_without(run)[0]) == 2**20 - 1
    assert run.incomplete_because() == (
        f"ranks 1, 2, 3, 4, 5, 6, 7, 8 and {2**20 - 9} more of {2**20} left no trace",
    )


def test_a_window_in_which_nothing_was_recorded_does_not_end(trace: TraceBuilder) -> None:
    """A process that died behind its header leaves no window."""
    _died(trace, 0)

    assert _without(open_run([trace.folder])) == {}
