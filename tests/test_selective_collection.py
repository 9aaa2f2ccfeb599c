"""What is recorded for one invariant alone is enough to judge it as a full trace does."""

import json
from pathlib import Path

import pytest

from traincheck_trace_schema.codec import loads

CASE = Path(__file__).parent / "cases" / "x-jxmnop-ddp-out-of-sync"
RANKS = 2


@pytest.mark.torch
@pytest.mark.ranks
@pytest.mark.parametrize(
    "claim",
    [
        "The grad of a replicated parameter is equal on all ranks of the world before",
        "The data of a replicated parameter is equal on all ranks of the world when a step ends",
        "Each call of torch.optim.Optimizer.step changes the data of each",
    ],
)
def test_one_invariant_alone_gets_the_verdict_of_the_full_trace(bench, claim):
    """Its plan asks for all that its monitor looks at, whatever other invariants ask for."""
    for name in ("fixed.py", "buggy.py"):
        bench.add(name, (CASE / name).read_text())
    bench.collect("fixed.py", "t_fixed", ranks=RANKS)
    bench.infer("t_fixed")
    lines = (bench.folder / "invariants.json").read_text().splitlines()
    (alone,) = [line for line in lines if loads(line)["text_description"].startswith(claim)]
    (bench.folder / "invariants_alone.json").write_text(f"{alone}\n")

    bench.collect("buggy.py", "t_full", ranks=RANKS)
    bench.collect("buggy.py", "t_plan", "-i", "invariants_alone.json", ranks=RANKS)
    full, plan = (
        bench.check(trace, f"r_{trace}", invariants="invariants_alone.json", code=None)
        for trace in ("t_full", "t_plan")
    )

    assert plan["not_triggered"] == 0
    assert json.dumps(plan["violations"]) == json.dumps(full["violations"])
