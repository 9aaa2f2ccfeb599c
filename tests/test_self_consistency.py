"""What inference has learnt from a run, checking does not report on that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import event, given, settings
from hypothesis import strategies as st

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.judge import check_run
from traincheck_check.judging.outcome import outcome_of
from traincheck_infer.inference import infer_invariants
from traincheck_relations.registry import load_relations
from traincheck_relations.testing.traces import ShardBuilder, TraceBuilder, optimizer, tensor
from traincheck_trace_schema.reading import Run, open_runs

if TYPE_CHECKING:
    import pytest

FUNCTIONS = ("torch.optim.SGD.step", "torch.optim.Adam.step", "torch.Tensor.backward", "torch.relu")
VARIABLES = ("model.a", "model.b", "model.c")
CONTENTS = st.sampled_from([None, tensor("0", zero=True), tensor("1"), tensor("2")])
CHANGES = st.dictionaries(
    st.sampled_from(VARIABLES),
    st.dictionaries(st.sampled_from(["data", "grad"]), CONTENTS, min_size=1),
)
# A call: its function, the changes in it, and whether it has another call inside.
CALLS = st.lists(st.tuples(st.sampled_from(FUNCTIONS), CHANGES, st.booleans()), max_size=4)
# What a few steps did is done again and again, so that there is something to learn.
STEPS = st.lists(CALLS, min_size=1, max_size=3).map(lambda steps: steps * 4)
# For each rank, its steps; and which variables an optimizer holds.
RUNS = st.tuples(st.lists(STEPS, min_size=1, max_size=2), st.sets(st.sampled_from(VARIABLES)))


def write(trace: TraceBuilder, ranks: list, held: set[str]) -> Run:
    for number, steps in enumerate(ranks):
        rank = trace.rank(number)
        for name in ("SGD", "Adam"):
            rank.function(f"torch.optim.{name}.step", "torch.optim.Optimizer.step")
        variables = {
            name: rank.variable(
                name,
                held_by=["optimizer0"] if name in held else [],
                data=tensor("start"),
                grad=None,
                requires_grad=name in held,
            )
            for name in VARIABLES
        }
        for step, calls in enumerate(steps):
            rank.step(step)
            for call in calls:
                _call(rank, variables, *call)
            rank.observe("step_end")
    trace.write()
    (run,) = open_runs([trace.folder])
    return run


def _call(
    rank: ShardBuilder,
    variables: dict,
    function: str,
    changes: dict,
    is_nested: bool,  # noqa: FBT001
) -> None:
    with rank.call(function, of=optimizer("optimizer0")) as call:
        rank.observe("begin", call, function)
        if is_nested:
            with rank.call("torch.relu"):
                pass
        for name, attributes in changes.items():
            rank.change(variables[name], during=call, **attributes)
        rank.observe("end", call, function)


@settings(deadline=None, max_examples=60)
@given(st.lists(RUNS, min_size=1, max_size=2))
def test_checking_what_was_learnt_from_reports_nothing(
    tmp_path_factory: pytest.TempPathFactory, runs: list
) -> None:
    """Whatever the runs did, no invariant is broken in them."""
    relations = load_relations()
    written = [
        write(
            TraceBuilder(
                tmp_path_factory.mktemp("run"), run_id=f"run{number}", world_size=len(ranks)
            ),
            ranks,
            held,
        )
        for number, (ranks, held) in enumerate(runs)
    ]

    inference = infer_invariants(written, relations)

    assert inference.faults == ()
    event(f"{min(len(inference.invariants), 3)} invariants or more")
    for run in written:
        outcome = outcome_of(check_run(run, Claims.of(inference.invariants)))
        assert outcome.failed == ()
        assert outcome.summary.complete
