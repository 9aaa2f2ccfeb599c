"""A relation of a third party works in inference, checking and the plan; nothing is changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from traincheck_trace_schema.codec import loads

HERE = Path(__file__).parent
POOL = "torch.nn.functional.max_pool1d"
GOOD = """
import torch
from torch.nn import functional
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    pooled = functional.max_pool1d(model(torch.randn(2, 4)), 2)
    pooled.sum().backward()
    optimizer.step()
"""
# From step 5 on the largest values come with their indices, as a pair.
BAD = GOOD.replace(
    "    pooled.sum()",
    "    if step >= 5:\n"
    "        functional.max_pool1d(model(torch.randn(2, 4)), 2, return_indices=True)\n"
    "    pooled.sum()",
)


@pytest.fixture(scope="module")
def installed_plugin(tmp_path_factory):
    """Install the plugin as a distribution of its own, into a folder that is put on the path."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--target", str(folder), str(HERE / "plugin")]
    subprocess.run(command, check=True)
    return folder


@pytest.mark.torch
def test_a_plugin_is_learnt_recorded_and_checked(bench, installed_plugin):
    """Its invariant is inferred, its need for results is in the plan, its breach is found."""
    bench.environment["PYTHONPATH"] = str(installed_plugin)
    bench.add("good.py", GOOD)
    bench.add("bad.py", BAD)

    bench.collect("good.py", "t_good")
    bench.infer("t_good")
    bench.collect("bad.py", "t_bad", "-i", "invariants.json")
    summary = bench.check("t_bad", "r_bad", code=1)

    learnt = [loads(line) for line in (bench.folder / "invariants.json").read_text().splitlines()]
    assert any(
        one["relation"] == "TensorResultRelation"
        and one["params"] == [{"param_type": "APIParam", "api_full_name": POOL}]
        for one in learnt
    )
    plan = loads((bench.folder / "t_bad" / "plan.json").read_text())
    assert any(one["name"] == POOL and one.get("result") for one in plan["functions"])
    (broken,) = [one for one in summary["violations"] if one["relation"] == "TensorResultRelation"]
    assert broken["first"]["step"] == 5
    assert broken["first"]["function"] == POOL


@pytest.mark.torch
def test_without_the_plugin_its_invariants_are_told_and_the_others_checked(bench, installed_plugin):
    """They count as not triggered, and a line says which relation is missing."""
    bench.environment["PYTHONPATH"] = str(installed_plugin)
    bench.add("good.py", GOOD)
    bench.collect("good.py", "t_good")
    bench.infer("t_good")
    bench.environment["PYTHONPATH"] = os.devnull

    result = bench.run(
        "traincheck-check", "-f", "t_good", "-i", "invariants.json", "-o", "r", code=0
    )

    assert "relation 'TensorResultRelation' is not installed" in result.stderr
    not_triggered = (bench.folder / "r" / "not_triggered.log").read_text()
    assert "it can't be checked: relation 'TensorResultRelation'" in not_triggered
