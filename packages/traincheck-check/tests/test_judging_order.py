"""What is told does not depend on the order in which the records of processes come."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.following import Following, Waiting
from traincheck_check.judging.judge import check_run
from traincheck_check.judging.outcome import outcome_of
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.reading import open_run

if TYPE_CHECKING:
    from pathlib import Path

    from traincheck_trace_schema.invariants import Invariant

FC2 = "model.fc2.weight"


@pytest.mark.parametrize("seed", range(6))
def test_ranks_that_write_in_turns(
    tmp_path: Path, claims: tuple[Invariant, ...], seed: int
) -> None:
    """Followed piece by piece, in whatever order, the outcome is that of the whole trace."""
    rng = random.Random(seed)  # noqa: S311  reproducible orders
    trace = TraceBuilder(tmp_path / "whole", world_size=3)
    for rank in range(3):
        train(trace.rank(rank), 6, stuck=[FC2] if rank else [], since=2)
    trace.write()
    shards = {
        path.name: path.read_text().splitlines(keepends=True) for path in trace.folder.iterdir()
    }
    growing = tmp_path / "growing"
    growing.mkdir()
    following = Following(Waiting(paths=(growing,)), Claims.of(claims))

    while shards:
        name = rng.choice(sorted(shards))
        count = rng.randint(1, 12)
        with (growing / name).open("a") as file:
            file.writelines(shards[name][:count])
        del shards[name][:count]
        if not shards[name]:
            del shards[name]
        for _ in following.advance():
            pass
    following.finish()

    whole = outcome_of(check_run(open_run([trace.folder]), Claims.of(claims)))
    assert outcome_of(following.checked()) == whole
    assert whole.summary.failed
