"""The rules between the shards of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from traincheck_trace_schema.validation import RunRules, ShardFacts


def _shard(name: str, *, begin: int = 0, last_ns: int | None = 10, **fields: Any) -> ShardFacts:
    header = {
        "run_id": "run",
        "role": "main",
        "rank": 0,
        "world_size": 2,
        "clock": {"wall_ns": begin, "monotonic_ns": 0},
        **fields,
    }
    return ShardFacts.of(Path("folder", name), header, last_ns=last_ns, steps=1)


def _told(*shards: ShardFacts) -> list[str]:
    rules = RunRules()
    return [finding.what for shard in shards for finding in rules.take(shard)]


@pytest.mark.parametrize(
    "second",
    [
        _shard("b", rank=1),
        _shard("b", restart=1),
        _shard("b", role="worker"),
        _shard("b", run_id="other"),
        _shard("b", begin=11),
        _shard("b", begin=11, world_size=1),
    ],
    ids=["rank", "restart", "worker", "run", "later", "later and smaller"],
)
def test_shards_that_go_together_are_no_problem(second: ShardFacts) -> None:
    """Programs start workers, restart ranks, and run one after another."""
    assert _told(_shard("a"), second) == []


@pytest.mark.parametrize("last_ns", [10, None])
def test_a_rank_trains_once_at_a_time(last_ns: int | None) -> None:
    """The other shard is named; a shard that tells no times may have been written at any."""
    first = _shard("a", last_ns=last_ns)

    (what,) = _told(first, _shard("b", begin=5))

    assert what == "is a second main shard of rank 0 in restart 0 of run 'run', beside folder/a"


def test_a_process_that_only_waits_contradicts_none() -> None:
    """One that starts the ranks has no steps, and knows of no world."""
    header = {"run_id": "run", "role": "main", "rank": 0, "world_size": 1}
    clock = {"clock": {"wall_ns": 0, "monotonic_ns": 0}}
    waiting = ShardFacts.of(Path("w"), header | clock, last_ns=99, steps=0)

    assert _told(waiting, _shard("a"), _shard("b", rank=1)) == []


def test_the_world_has_one_size() -> None:
    """Of a restart, at a time."""
    (what,) = _told(_shard("a"), _shard("b", rank=1, world_size=3))

    assert what == (
        "field 'world_size' must be one number in restart 0 of run 'run'; got 3, and 2 in folder/a"
    )


def test_several_runs_in_a_folder_are_noted() -> None:
    """It is legal, and may be a mistake."""
    rules = RunRules()
    for shard in (_shard("a"), _shard("b", run_id="other"), _shard("c")):
        list(rules.take(shard))

    assert list(rules.notes()) == [(Path("folder"), "holds 2 runs: 'run', 'other'")]
