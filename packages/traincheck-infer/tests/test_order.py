"""The same runs give the same invariants, whoever reads them, in whichever order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

from traincheck_infer.inference import infer_invariants
from traincheck_infer.progress import Progress
from traincheck_infer.workers import Workers
from traincheck_relations.registry import load_relations
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.reading import Run, open_runs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAMES = ("model.a.weight", "model.b.weight", "model.c.bias")
RUNS = st.fixed_dictionaries(
    {
        "steps": st.integers(0, 9),
        "parameters": st.lists(st.sampled_from(NAMES), unique=True, min_size=1).map(tuple),
        "stuck": st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
        "since": st.integers(0, 6),
    }
)


def written(folder: Path, runs: list[dict]) -> list[Run]:
    folders = []
    for number, run in enumerate(runs):
        trace = TraceBuilder(folder / str(number), run_id=f"run{number}")
        train(trace.rank(), **run)
        folders.append(trace.write().parent)
    return open_runs(folders)


def inferred(runs: list[Run], workers: int = 1) -> list[str]:
    with parallel_config(backend="threading"):
        who = Workers(Progress(is_terminal=False), workers)
        inference = infer_invariants(runs, load_relations(), workers=who)
    assert inference.faults == ()
    account = (sorted((each.name, n) for each, n in inference.left_out.items()), inference.runs)
    return [*(dumps(unstructure(each)) for each in inference.invariants), repr(account)]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_neither_order_nor_workers_matter(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Two times, in another order, with other workers: the same lines."""
    made = data.draw(st.lists(RUNS, min_size=1, max_size=3))
    runs = written(tmp_path_factory.mktemp("runs"), made)

    alone = inferred(runs)

    assert inferred(data.draw(st.permutations(runs)), data.draw(st.integers(1, 5))) == alone


@given(st.integers(1, 9), st.integers(1, 9), st.sets(st.sampled_from("abcdef")))
def test_each_relation_is_in_one_group(number: int, runs: int, names: set[str]) -> None:
    """And there are no more groups than it takes to give each worker something to do."""
    groups = Workers(Progress(is_terminal=False), number).groups(names, runs)

    assert sorted(name for group in groups for name in group) == sorted(names)
    assert runs * (len(groups) - 1) < number
