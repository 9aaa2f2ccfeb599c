"""Which ranks a window waits for, and for how long."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_trace_schema.reading import StreamItem, WindowEnd, open_live

if TYPE_CHECKING:
    from conftest import Clock, TraceBuilder

TIMEOUT = 60.0


class Job:
    """A run of several ranks that writes as it is told, and is followed."""

    def __init__(self, trace: TraceBuilder, clock: Clock) -> None:
        self.trace = trace
        self.clock = clock
        self.live = open_live([trace.folder], rank_timeout=TIMEOUT, clock=clock)

    def begin(self, *ranks: int, world_size: int = 2, **header: Any) -> None:
        """Have ranks write their header."""
        restart = header.get("restart", 0)
        for rank in ranks:
            header.setdefault("clock", {"wall_ns": restart, "monotonic_ns": 0})
            record = self.trace.header(rank, world_size=world_size, **header)
            self.trace.append(_name(rank, restart), record)

    def write(self, rank: int, *steps: int, restart: int = 0) -> None:
        """Have a rank begin steps."""
        self.trace.append(_name(rank, restart), *self.trace.steps(*steps))

    def end(self, rank: int, restart: int = 0) -> None:
        """Have a rank end cleanly."""
        self.trace.append(_name(rank, restart), self.trace.footer())

    def poll(self, after: float = 0.0) -> list[Any]:
        """Return (rank, step) of each record, and each end of a window, after so many seconds."""
        self.clock.now += after
        return [self._short(item) for item in self.live.poll()]

    def _short(self, item: StreamItem | WindowEnd) -> Any:
        if isinstance(item, WindowEnd):
            return item.window.step, item.without
        rank = self.live.shards[item.process].header.rank
        return f"r{rank}", item.record.get("step", item.record["kind"])


def _name(rank: int, restart: int) -> str:
    return f"trace_r{rank}_{restart}.json"


@pytest.fixture
def job(trace: TraceBuilder, clock: Clock) -> Job:
    return Job(trace, clock)


def test_a_rank_that_others_overtook_is_given_up(job: Job) -> None:
    """After the time-out windows end without it, and that is told once."""
    job.begin(0, 1)
    job.write(0, 0, 1, 2)
    job.write(1, 0)
    assert job.poll()[-2:] == [("r0", 0), ("r1", 0)]
    assert job.poll(after=TIMEOUT) == []

    assert job.poll(after=1) == [(0, (1,)), ("r0", 1), (1, (1,)), ("r0", 2)]

    job.write(0, 3)
    assert job.poll(after=TIMEOUT) == [(2, (1,)), ("r0", 3)]
    (note,) = job.live.notes()
    assert note == (
        "rank 1: was silent for more than 60 s in step 0, while others went on; "
        "windows end without waiting"
    )


def test_ranks_that_are_silent_together_are_waited_for(job: Job) -> None:
    """A checkpoint may take long; the first that goes on after it makes no other late."""
    job.begin(0, 1)
    job.write(0, 0)
    job.write(1, 0)
    job.poll()
    job.poll(after=10 * TIMEOUT)
    job.write(0, 1)
    assert job.poll() == []
    assert job.poll(after=TIMEOUT) == []

    job.write(1, 1)

    assert job.poll(after=1) == [(0, ()), ("r0", 1), ("r1", 1)]
    assert job.live.notes() == ()


def test_the_time_out_begins_anew_with_each_window(job: Job) -> None:
    """A rank that was read ahead could not be heard while the window waited for another one."""
    job.begin(0, 1, 2, world_size=3)
    job.write(0, 0, 1, 2)
    job.write(1, 0)
    job.write(2, 0, 1)
    job.poll()
    job.poll(after=TIMEOUT)
    job.write(1, 1, 2)

    assert job.poll(after=1)[0] == (0, ())
    assert job.poll(after=TIMEOUT) == []
    assert job.poll(after=1)[0] == (1, (2,))


def test_a_rank_that_speaks_is_not_given_up(job: Job) -> None:
    """However slow it is, as long as something comes; half a line will do."""
    job.begin(0, 1)
    job.write(0, 0, 1)
    job.write(1, 0)
    job.poll()
    for _ in range(5):
        with (job.trace.folder / _name(1, 0)).open("a") as file:
            file.write(" ")
        assert job.poll(after=TIMEOUT) == []

    assert job.poll(after=TIMEOUT + 1)[0] == (0, (1,))


def test_a_rank_that_ended_overtakes_others(job: Job) -> None:
    """One that hangs at the end is given up, too."""
    job.begin(0, 1)
    job.write(0, 0)
    job.end(0)
    job.write(1, 0)
    assert job.poll()[-1] == ("r1", 0)
    assert job.poll(after=TIMEOUT) == []

    assert job.poll(after=1) == [(0, (1,))]
    assert not job.live.is_over


def test_a_rank_that_is_heard_again_takes_part_again(job: Job) -> None:
    """What it says of windows that have ended comes late; the open window waits for it."""
    job.begin(0, 1)
    job.write(0, 0, 1, 2)
    job.write(1, 0)
    job.poll()
    job.poll()
    assert job.poll(after=TIMEOUT + 1)[-1] == ("r0", 2)

    job.write(1, 0, 1)
    job.write(0, 3)
    assert job.poll() == [("r1", 0), ("r1", 1)]
    assert "rank 1: is heard again" in job.live.notes()[1]

    job.write(1, 2, 3)
    assert job.poll() == [("r1", 2), (2, ()), ("r0", 3), ("r1", 3)]


def test_a_rank_that_is_given_up_again_and_again_is_told_a_few_times(job: Job) -> None:
    """Notes stay short, however often one rank evaluates alone."""
    job.begin(0, 1)
    for step in range(10):
        job.write(0, step, step + 1)
        job.write(1, step)
        job.poll()
        job.poll(after=TIMEOUT + 1)

    assert len(job.live.notes()) == 6


def test_a_rank_that_never_shows_up_is_given_up(job: Job) -> None:
    """The time-out begins when the first window could have ended."""
    job.begin(0)
    job.write(0, -1)
    job.poll()
    assert job.poll(after=10 * TIMEOUT) == []
    job.write(0, 0)
    assert job.poll() == []
    assert job.poll(after=TIMEOUT) == []

    assert job.poll(after=1) == [(-1, (1,)), ("r0", 0)]
    assert "rank 1: left no trace for more than 60 s" in job.live.notes()[0]

    job.begin(1)
    job.write(1, -1, 0)
    job.write(0, 1)
    assert job.poll() == [("r1", "header"), ("r1", -1), ("r1", 0)]


def test_ranks_that_were_given_up_may_show_up_one_by_one(job: Job) -> None:
    """Those that are not there yet are not waited for a second time; nor is the run over."""
    job.begin(0, world_size=3)
    job.write(0, -1, 0)
    job.poll()
    assert job.poll(after=TIMEOUT + 1)[0] == (-1, (1, 2))

    job.begin(1, world_size=3)
    job.write(1, 0, 1)
    job.write(0, 1)
    assert (0, (2,)) in job.poll()

    job.end(0)
    job.end(1)
    assert job.poll()[-1] == (1, (2,))
    assert not job.live.is_over


def test_many_ranks_that_never_show_up_are_told_in_one_line(job: Job) -> None:
    """A header may claim a world of any size; the note, and memory, stay short."""
    job.begin(0, world_size=1_000_000)
    job.write(0, -1, 0)
    tracemalloc.start()
    job.poll()
    assert len(job.poll(after=TIMEOUT)) == 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    ended, record = job.poll(after=TIMEOUT)

    assert (ended[0], len(ended[1]), record) == (-1, 999_999, ("r0", 0))
    (note,) = job.live.notes()
    assert note.startswith("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 999991 more: left no trace for more")
    assert peak < 1_000_000


def test_a_rank_goes_on_in_its_restart(job: Job) -> None:
    """The shard of its last attempt, which has no footer, holds nothing open any more."""
    job.begin(0, 1)
    for rank in 0, 1:
        job.write(rank, 0, 1)
    assert job.poll()[-1] == ("r1", 1)

    job.begin(0, 1, restart=1)
    for rank in 0, 1:
        job.write(rank, 0, restart=1)
    assert job.poll()[2:] == [("r0", 0), ("r1", 0)]
    for rank in 0, 1:
        job.write(rank, 1, 2, restart=1)
    assert job.poll() == [("r0", 1), ("r1", 1), (1, ()), ("r0", 2), ("r1", 2)]

    for rank in 0, 1:
        job.end(rank, restart=1)
    job.poll()
    assert job.live.is_over
    assert job.live.notes() == ()


def test_a_rank_that_never_showed_up_is_waited_for_in_a_restart(job: Job) -> None:
    """It may have died early; the next attempt is another one."""
    job.begin(0)
    job.write(0, -1, 0, 1)
    job.poll()
    assert job.poll(after=TIMEOUT + 1)[0] == (-1, (1,))
    assert job.poll()[-1:] == []

    job.begin(0, restart=1)
    job.write(0, 1, 2, restart=1)

    assert job.poll() == [("r0", "header"), ("r0", 1)]
    assert job.poll(after=TIMEOUT + 1)[0] == (1, (1,))


def test_a_restart_may_be_smaller(job: Job) -> None:
    """Ranks that the new world does not have are not waited for."""
    job.begin(0, 1)
    job.write(0, 0)
    job.write(1, 0)
    job.poll()

    job.begin(0, world_size=1, restart=1)
    job.write(0, 0, 1, restart=1)

    assert job.poll() == [("r0", "header"), ("r0", 0), (0, ()), ("r0", 1)]


def test_a_process_that_learns_its_rank_counts_as_that(job: Job) -> None:
    """The last header says which rank a process is."""
    name = "trace_spawned.json"
    job.trace.append(name, job.trace.header(0), *job.trace.steps(-1))
    job.begin(0)
    job.write(0, -1, 0)
    job.poll()

    job.trace.append(name, job.trace.header(1, world_size=2), *job.trace.steps(0, 1))
    job.write(0, 1)

    assert job.poll()[-1] == ("r0", 1)


@pytest.mark.parametrize("is_broken_off", [False, True])
def test_what_a_process_learns_counts_at_once(job: Job, *, is_broken_off: bool) -> None:
    """Also within a poll, and if that is broken off behind the header."""
    for header in job.trace.header(0), job.trace.header(1, world_size=2):
        job.trace.append("trace_spawned.json", header, *job.trace.steps(-1, -1))
    job.trace.append("trace_spawned.json", *job.trace.steps(0, 1))
    polled = job.live.poll()

    items = [next(polled) for _ in range(6)]
    if is_broken_off:
        polled.close()

    kinds = [item.record["kind"] for item in items if isinstance(item, StreamItem)]
    assert kinds == ["header", "step", "step", "header", "step", "step"]
    assert list(polled) == job.poll() == []


def test_one_that_waits_for_another_process_of_its_rank_holds_nothing(job: Job) -> None:
    """A launcher in Python is of rank 0, too, and writes nothing while it waits."""
    parent = job.trace.header(0, clock={"wall_ns": -1, "monotonic_ns": 0})
    job.trace.append("trace_parent.json", parent, *job.trace.steps(-1))
    job.begin(0, 1)
    job.write(0, 0, 1)
    job.write(1, 0, 1)

    assert job.poll()[-3:] == [(0, ()), ("r0", 1), ("r1", 1)]

    job.end(0)
    job.end(1)
    job.poll()
    assert not job.live.is_over

    job.trace.append("trace_parent.json", job.trace.footer())
    job.poll()
    assert job.live.is_over


def test_the_ranks_that_hold_the_window_open_are_known(job: Job) -> None:
    """One that is not there yet, those that are in it, and nobody at the end."""
    job.begin(0)
    job.write(0, 0, 1)
    job.poll()
    assert job.live.awaited == (1,)

    job.begin(1)
    job.write(1, 0)
    job.poll()
    assert job.live.awaited == (1,)

    job.write(1, 1)
    job.poll()
    assert job.live.awaited == (0, 1)
    sizes = [process.file.seen_size for process in job.live.processes]
    assert sizes == [shard.path.stat().st_size for shard in job.live.shards]

    assert [*job.live.finish()] != []
    assert job.live.awaited == ()
