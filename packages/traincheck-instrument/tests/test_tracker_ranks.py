"""Two ranks train as without us, under every tracker; one job of torchrun for all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict

import pytest

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.validation import FileCheck

pytestmark = pytest.mark.ranks

TRACKERS = ("subclass", "proxy", "sampler")
PROGRAM = """
import copy, json, sys
from pathlib import Path
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
import traincheck_instrument as traincheck
from traincheck_instrument import session
from traincheck_instrument.settings import RecordingSettings

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.two.weight = self.one.weight
        self.bn = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.bn(self.two(self.one(x))))

class Plain(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

def steps(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    seen = []
    for step in range(3):
        traincheck.start_step()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.linspace(-1, 1 + dist.get_rank(), 24).reshape(6, 4)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append(loss.item())
    traincheck.start_step()
    return seen

def whole(value):
    value = value.full_tensor() if hasattr(value, "full_tensor") else value
    return value.detach().flatten().tolist()

def state(model):
    return {name: whole(value) for name, value in sorted(model.state_dict().items())}

def ddp():
    torch.manual_seed(0)
    model = traincheck.track(Net(), name="model")
    model = traincheck.track(DDP(model), name="model")
    assert type(model) is DDP
    seen = steps(model)
    assert model.module.two.weight is model.module.one.weight
    return seen, state(copy.deepcopy(model.module))

def fsdp():
    torch.manual_seed(0)
    model = traincheck.track(Plain(), name="sharded")
    fully_shard(model[0])
    model = traincheck.track(fully_shard(model), name="sharded")
    seen = steps(model)
    return seen, state(model)

def main(folder):
    dist.init_process_group("gloo")
    results = {"plain": [ddp(), fsdp()]}
    for tracker in sys.argv[2:]:
        (folder / tracker).mkdir(exist_ok=True)
        session.begin(RecordingSettings(
            script=Path(__file__), output_dir=folder / tracker, run_id="run", tracker=tracker
        ))
        results[tracker] = [ddp(), fsdp()]
        session.end(clean=True)
    (folder / f"rank{dist.get_rank()}.json").write_text(json.dumps(results))
    dist.destroy_process_group()

main(Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    launched = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            *(str(program), str(folder), *TRACKERS),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert launched.returncode == 0, launched.stderr
    assert "traincheck: " not in launched.stderr
    return folder


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("tracker", TRACKERS)
def test_ranks_train_as_without_us(folder, tracker, rank):
    """Losses and weights have the same bits: tied, in DDP, with a scaler, and sharded."""
    results = json.loads((folder / f"rank{rank}.json").read_text())

    assert results[tracker] == results["plain"]


@pytest.mark.parametrize("tracker", TRACKERS)
def test_the_changes_of_replicas_and_shards_are_seen(folder, tracker):
    """Each parameter changes in each step, under the name that it had before it was wrapped."""
    for shard in (folder / tracker).glob("trace_*.json"):
        assert [*FileCheck(shard).problems()] == []
        steps = defaultdict(set)
        for record in map(loads, shard.read_text().splitlines()):
            if record["kind"] == "var" and record["event"] == "changed":
                for name in record["names"] if "data" in record["attributes"] else ():
                    steps[name].add(record["step"])
        trained = {f"model.{part}" for part in ("one.weight", "two.weight", "bn.bias", "head.bias")}
        trained |= {f"sharded.{layer}.{part}" for layer in "02" for part in ("weight", "bias")}
        assert {name for name in trained if len(steps[name]) >= 3} == trained
    assert len([*(folder / tracker).glob("trace_*.json")]) == 2
