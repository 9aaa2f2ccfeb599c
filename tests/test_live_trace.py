"""A trace that is followed while a real program writes it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from traincheck_trace_schema.codec import dumps
from traincheck_trace_schema.reading import StreamItem, WindowEnd, open_live, open_run

if TYPE_CHECKING:
    from conftest import Bench

    from traincheck_trace_schema.reading import LiveRun, Run

PROGRAM = """
import os, signal, sys
import torch
from torch.utils.data import DataLoader, TensorDataset

rank, victim = int(os.environ.get("RANK", 0)), int(sys.argv[1]) if len(sys.argv) > 1 else None
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = DataLoader(TensorDataset(torch.ones(32, 4)), batch_size=4, num_workers=1)
for epoch in range(2):
    for step, (batch,) in enumerate(data):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if epoch == 1 and step == 3 and rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def _follow(bench: Bench, *command: object) -> tuple[LiveRun, list[StreamItem | WindowEnd]]:
    """Run a command that collects into `trace`, and poll the trace all the while."""
    live = open_live([bench.folder / "trace"])
    items: list[StreamItem | WindowEnd] = []
    collect = shutil.which("traincheck-collect", path=bench.environment["PATH"])
    assert collect is not None
    with subprocess.Popen(
        [collect, *map(str, command), "--output-dir", "trace"],
        cwd=bench.folder,
        env=bench.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
            items += live.poll()
    # A worker notices after seconds that the rank that it worked for was killed, and then ends.
    while any(_is_alive(shard.header.pid) for shard in live.shards):
        time.sleep(0.02)
    items += live.poll()
    return live, items


def _is_alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"  # nobody may have asked how it ended


def _by_process(
    run: Run | LiveRun, items: list[StreamItem | WindowEnd]
) -> tuple[dict[str, list[tuple[int, str]]], list[WindowEnd]]:
    """Return what a stream gave of each shard, and its ends of windows."""
    given: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for item in items:
        if isinstance(item, StreamItem):
            given[run.shards[item.process].name].append((item.line, dumps(item.record)))
    return given, [item for item in items if isinstance(item, WindowEnd)]


def _assert_is_that_of_the_finished_run(
    live: LiveRun, items: list[StreamItem | WindowEnd], folder: Path
) -> None:
    run = open_run([folder])
    given, ends = _by_process(live, items)
    wanted, wanted_ends = _by_process(run, list(run.stream()))
    assert {name: len(records) for name, records in given.items()} == {
        name: len(records) for name, records in wanted.items()
    }
    assert given == wanted
    assert ends == wanted_ends
    assert live.incomplete_because() == run.incomplete_because()
    assert live.notes() == run.notes()


@pytest.mark.torch
def test_a_program_is_followed_to_its_end(bench: Bench) -> None:
    """All of the training and of its workers, without asking for the end."""
    bench.add("train.py", PROGRAM)

    live, items = _follow(bench, "--pyscript", "train.py", "--models-to-track", "model")

    assert live.is_over
    _assert_is_that_of_the_finished_run(live, items, bench.folder / "trace")
    assert {shard.header.role for shard in live.shards} == {"main", "worker"}


@pytest.mark.torch
@pytest.mark.ranks
def test_a_rank_that_is_killed_is_followed_to_its_last_record(bench: Bench) -> None:
    """What a rank wrote before SIGKILL is given; nobody is given up before the time-out."""
    bench.add("train.py", PROGRAM)
    bench.add("run.sh", "torchrun --standalone --nproc-per-node 2 train.py 1\n")

    live, items = _follow(
        bench, "--pyscript", "train.py", "--shscript", "run.sh", "--models-to-track", "model"
    )
    assert not live.is_over
    items += live.finish()

    _assert_is_that_of_the_finished_run(live, items, bench.folder / "trace")
    assert any("rank 1 did not end cleanly" in reason for reason in live.incomplete_because())
