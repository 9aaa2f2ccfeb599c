"""How far the ranks of a run came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.judge import check_run
from traincheck_check.judging.progress import uneven
from traincheck_check.judging.warnings import warnings_of
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.results import RankProgress

if TYPE_CHECKING:
    from pathlib import Path

    from traincheck_check.judging.judge import Checked
    from traincheck_trace_schema.invariants import Invariant


def checked(trace: TraceBuilder, claims: tuple[Invariant, ...]) -> Checked:
    trace.write()
    return check_run(open_run([trace.folder]), Claims.of(claims))


def test_ranks_that_end_at_different_steps_are_told(
    tmp_path: Path, claims: tuple[Invariant, ...]
) -> None:
    """Some did less of the work, though each ended cleanly."""
    trace = TraceBuilder(tmp_path, world_size=3)
    for number, steps in enumerate((4, 2, 4)):
        rank = trace.rank(number)
        for step in range(steps):
            rank.step(step)

    found = checked(trace, claims)

    assert [(each.rank, each.steps, each.last, each.ended) for each in found.ranks] == [
        (0, 4, 3, True),
        (1, 2, 1, True),
        (2, 4, 3, True),
    ]
    assert "ranks ended at different steps: rank 1 at step 1, the others at step 3" in [
        *warnings_of(found)
    ]


def test_steps_that_were_left_out_are_counted(
    tmp_path: Path, claims: tuple[Invariant, ...]
) -> None:
    """So that nobody takes them for checked."""
    trace = TraceBuilder(tmp_path)
    rank = trace.rank()
    for step in range(6):
        rank.step(step, sampled=step % 3 == 0)

    (progress,) = checked(trace, claims).ranks

    assert (progress.steps, progress.recorded, progress.first, progress.last) == (6, 2, 0, 5)


def test_many_ranks_are_told_shortly() -> None:
    """The first few by name."""
    ranks = tuple(
        RankProgress(rank=rank, steps=1, recorded=1, first=0, last=0 if rank else 9)
        for rank in range(8)
    )

    assert uneven(ranks) == (
        "ranks ended at different steps: rank 1 at step 0, rank 2 at step 0, rank 3 at step 0, "
        "rank 4 at step 0 and 3 more, the others at step 9"
    )
    assert uneven(ranks[1:]) == ""
