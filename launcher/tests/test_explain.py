"""`--explain`: what would be done, and nothing is run."""

from __future__ import annotations

import json

import pytest

PROGRAM = """\
import mine
model = mine.Net()
for i in range(9):
    if i % 2:
        optimizer.step()
1 / 0
"""


@pytest.fixture
def program(place):
    """A folder with a program, and a module of its own, that must not be run."""
    place.write("train.py", PROGRAM)
    place.write("mine.py", "raise SystemExit('was run')\n")
    return place


@pytest.mark.torch
def test_everything_that_would_be_recorded_is_shown(program):
    """Loops and names by file and line, functions by module, tracker, sampling; no folder."""
    options = ("--models-to-track", "model", "--modules-to-instr", "torch", "mine", "__main__")
    policy = ("--sampling-interval", "8", "--overhead-budget", "5%")

    result = program.collect("-p", "train.py", *options, *policy, "--explain")

    shown = " ".join(result.stdout.split())
    assert result.returncode == 0, result.stderr
    assert "train.py:3: training loop: start_step(accumulating=True)" in shown
    assert "train.py:2: tracked as 'model'" in shown
    assert "functions of torch, mine, the script" in shown
    assert "of the script itself only methods that override public ones are recorded" in shown
    assert "what mine has is not listed: only the program imports your modules" in shown
    assert "variables model; tracker subclass, tensors as hash" in shown
    assert "steps 1 of 8 steps; fewer where recording would take more than 5%" in shown
    assert "--verbose shows the rest" in shown
    assert "torch.nn.functional" in shown
    assert "torch.optim.SGD.step" not in shown
    assert not program.out.exists()


@pytest.mark.torch
def test_what_is_missing_is_told_and_all_functions_on_request(place):
    """A loop to be marked by hand, names that hold models; a line for each function."""
    place.write("train.py", "net = Net()\nnet.parameters()\nTrainer(net).fit()\n")

    result = place.collect("-p", "train.py", "--explain", "--verbose")

    lines = result.stdout.splitlines()
    assert lines[0].startswith("train.py: no training loop found; steps are counted by the ")
    assert "train.py: no model is tracked (--models-to-track); candidates: net" in lines
    assert "  variables  none: no model is tracked" in lines
    assert "  torch.optim.SGD.step" in lines


def test_invariants_say_which_functions_are_needed(program):
    """With what of them; torch is not imported for that."""
    invariant = {
        "text_description": "",
        "relation": "APIContainRelation",
        "params": [
            {"param_type": "APIParam", "api_full_name": name}
            for name in ("torch.optim.Optimizer.step", "mine.loss")
        ],
        "precondition": {},
    }
    program.write("invariants.json", f"{json.dumps(invariant)}\n")

    result = program.collect("-p", "train.py", "-i", "invariants.json", "--explain")

    assert result.returncode == 0, result.stderr
    assert "calls      of 2 functions that the invariants need" in result.stdout
    assert "variables  none: no invariant needs them" in result.stdout
    assert "mine.loss" in result.stdout
