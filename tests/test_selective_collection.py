"""What is recorded for one invariant alone is enough to judge it as a full trace does."""

import json
from pathlib import Path

import pytest

from traincheck_trace_schema.codec import loads

CASE = Path(__file__).parent / "cases" / "x-jxmnop-ddp-out-of-sync"
RANKS = 2


def _told(summary):
    """Return what is told of violations, without the records that show them."""
    violations = [{**each, "evidence": None} for each in summary["violations"]]
    return json.dumps(violations)


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
    assert _told(plan) == _told(full)


@pytest.mark.torch
@pytest.mark.ranks
def test_comparisons_alone_are_followed_by_the_sampler(bench):
    """Which sees all that they need: a healthy run is silent, drifting replicas are found."""
    for name in ("fixed.py", "buggy.py"):
        bench.add(name, (CASE / name).read_text())
    bench.collect("fixed.py", "t_fixed", ranks=RANKS)
    bench.infer("t_fixed")
    lines = (bench.folder / "invariants.json").read_text().splitlines()
    kept = [line for line in lines if loads(line)["relation"] == "ConsistencyRelation"]
    (bench.folder / "invariants_kept.json").write_text("\n".join((*kept, "")))

    verdicts = {}
    for name in ("fixed", "buggy"):
        bench.collect(f"{name}.py", f"s_{name}", "-i", "invariants_kept.json", ranks=RANKS)
        verdicts[name] = bench.check(
            f"s_{name}", f"r_{name}", invariants="invariants_kept.json", code=None
        )
    bench.collect("buggy.py", "t_buggy", ranks=RANKS)
    whole = bench.check("t_buggy", "r_whole", invariants="invariants_kept.json", code=1)

    headers = [one for one in bench.records("s_buggy") if one["kind"] == "header"]
    assert {header["tracker"] for header in headers} == {"sampler"}
    assert len(kept) > 1
    assert (verdicts["fixed"]["failed"], verdicts["fixed"]["not_triggered"]) == (0, 0)
    assert _told(verdicts["buggy"]) == _told(whole)
