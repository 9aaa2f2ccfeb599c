"""`traincheck diff` on real programs: the same ones are the same, and one planted bug is found."""

from pathlib import Path

import pytest

from traincheck_trace_schema.codec import loads

HERE = Path(__file__).parent
PROGRAM = """
import sys
import torch
from torch import nn

plant = sys.argv[1]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))


torch.manual_seed(1 if plant == "seed" else 0)
inputs, targets, order = torch.randn(60, 8), torch.randint(0, 3, (60,)), torch.randperm(60)
if plant == "order":
    order[[20, 31]] = order[[31, 20]]
model = Net()
if plant == "init":
    with torch.no_grad():
        model.last.bias.zero_()
if plant == "frozen":
    model.first.weight.requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2 if plant == "lr" else 0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)
for step in range(6):
    if plant == "mode" and step == 3:
        model.drop.eval()
    batch = order[step * 10 : step * 10 + 10]
    if not (plant == "zero_grad" and step == 3):
        optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs[batch]), targets[batch])
    loss.backward()
    optimizer.step()
    scheduler.step()
    if plant == "write" and step == 4:
        with torch.no_grad():
            model.first.weight.mul_(0.99)
"""
ZERO_GRAD = "torch.optim.Optimizer.zero_grad"
EVAL = f"B calls torch.nn.Module.eval, A does not (it goes on with {ZERO_GRAD})"
NOT_CLEARED = f"A calls {ZERO_GRAD}, B does not (it goes on with __main__.Net.forward)"
WRITTEN = (
    "model.first.weight differs: B changes it outside of the calls that are looked at, "
    "after torch.optim.SGD.step"
)
# What is planted, and of what parts first: kind, step, words.
PLANTS = {
    "seed": ("arguments", -1, "torch.manual_seed is called with seed = 0 in A and 1 in B"),
    "order": ("arguments", 2, "__main__.Net.forward is called with other content of x"),
    "init": ("parameters", -1, "model.last.bias differs before the first step"),
    "frozen": ("settings", -1, "requires_grad of model.first.weight is True in A and False in B"),
    "lr": ("arguments", -1, "torch.optim.SGD.__init__ is called with lr = 0.1 in A and 0.2 in B"),
    "mode": ("calls", 3, EVAL),
    "zero_grad": ("calls", 3, NOT_CLEARED),
    "write": ("parameters", 4, WRITTEN),
}
# Which of them each run of the tests plants; all take minutes.
SOME = ("frozen", "mode", "zero_grad")
REST = tuple(each for each in PLANTS if each not in SOME)
RECORDED = {
    "sampled": ("--sampling-interval", "2"),
    "plan": ("-i", "invariants.json"),
    "sampler": ("--model-tracker-style", "sampler"),
    "proxy": ("--model-tracker-style", "proxy"),
    "values": ("--tensor-dump-format", "full"),
}
ONE_MODEL = ("digits_cnn", "char_lstm", "char_transformer", "digits_mlp_amp", "digits_vae")
WORKLOADS = [
    ("ddp_digits", 2, ("model",)),
    *(pytest.param(each, 1, ("model",), marks=pytest.mark.matrix) for each in ONE_MODEL),
    pytest.param("gcn_synthetic", 1, ("model",), marks=pytest.mark.matrix),
    pytest.param("dcgan_digits", 1, ("netG", "netD"), marks=pytest.mark.matrix),
]


def _diff(bench, a, b, *options, code):
    result = bench.run("traincheck", "diff", a, b, *options, "--format", "json", code=code)
    return loads(result.stdout)


@pytest.mark.torch
@pytest.mark.parametrize("plants", [SOME, pytest.param(REST, marks=pytest.mark.matrix)])
def test_what_was_planted_is_what_parts_first(bench, plants):
    """At its step, in words that point at it; and without it nothing parts."""
    bench.add("train.py", PROGRAM)
    for plant in ("none", "again", *plants):
        bench.collect("train.py", plant, "--", plant)

    assert _diff(bench, "none", "again", code=0)["verdict"] == "same"
    for plant in plants:
        first = _diff(bench, "none", plant, code=1)["divergences"][0]
        assert (first["kind"], first["step"], first["what"]) == PLANTS[plant]
        assert first["likely"]


@pytest.mark.torch
@pytest.mark.parametrize(
    "ways",
    [("sampled", "plan"), pytest.param(("sampler", "proxy", "values"), marks=pytest.mark.matrix)],
)
def test_traces_that_were_recorded_otherwise_are_compared_in_what_they_share(bench, ways):
    """Other trackers, formats of tensors, sampling and a plan: the same program is the same."""
    bench.add("train.py", PROGRAM)
    bench.collect("train.py", "full", "--", "none")
    if "plan" in ways:
        bench.infer("full")
    for way in ways:
        bench.collect("train.py", way, *RECORDED[way], "--", "none")
        bench.collect("train.py", f"{way}_order", *RECORDED[way], "--", "order")

    for way in ways:
        told = _diff(bench, "full", way, code=0)
        assert told["steps"] == (3 if way == "sampled" else 6)
        assert told["notes"]
        found = _diff(bench, "full", f"{way}_order", code=1)["divergences"]
        assert {each["step"] for each in found} == {2}


@pytest.mark.torch
@pytest.mark.ranks
@pytest.mark.parametrize(("name", "ranks", "models"), WORKLOADS)
def test_two_runs_of_a_program_are_the_same_and_another_seed_is_found(bench, name, ranks, models):
    """With evaluation, workers, mixed precision and several ranks."""
    bench.add("train.py", (HERE / "workloads" / f"{name}.py").read_text())
    for trace, *options in (("a",), ("b",), ("seed", "--seed", 77)):
        bench.collect("train.py", trace, "--", "--steps", 24, *options, ranks=ranks, models=models)

    same = _diff(bench, "a", "b", code=0)
    other = _diff(bench, "a", "seed", code=1)

    assert (same["verdict"], same["steps"], len(same["ranks"])) == ("same", 24, ranks)
    first = other["divergences"][0]
    assert first["what"].startswith("torch.manual_seed is called with seed = ")
    assert all(each["divergences"][0]["what"] == first["what"] for each in other["ranks"])
