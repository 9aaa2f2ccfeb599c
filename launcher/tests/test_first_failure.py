"""Of the ranks of a job that failed, the launcher names the first, and says where to read on."""

import pytest

PROGRAM = """\
import os, sys, time
import torch

rank, restart = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    if rank != restart and step == 2:
        raise ValueError(f"the data of rank {rank}\\nare broken")
time.sleep(60)
"""


@pytest.mark.torch
@pytest.mark.ranks
def test_the_rank_that_failed_first_is_named(place):
    """Of a job that was started again, that of the last start; each rank has a trace of each."""
    place.write("train.py", PROGRAM)

    done = place.collect(
        *("--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1"),
        *("-p", "train.py", "--models-to-track", "model"),
    )

    assert done.returncode == 1
    (line,) = [one for one in done.stderr.splitlines() if "failed first" in one]
    assert line.startswith("traincheck: rank 0 failed first (")
    assert ", in step 2, after 1 restart): ValueError: the data of rank 0 are broken; " in line
    failures = sorted((place.out).glob("failure_*.json"))
    assert [path.name[:10] for path in failures] == ["failure_r0", "failure_r1"]
    assert f"its traceback is in out/{failures[0].name}" in line
    assert "raise ValueError(f" in failures[0].read_text()
    assert len(list((place.out).glob("trace_*"))) == 4


KILLED = """\
import os, signal
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(20):
    dist.all_reduce(torch.ones(2))
    if dist.get_rank() == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.torch
@pytest.mark.ranks
def test_a_rank_that_a_signal_ended_is_named_and_not_who_missed_it(place):
    """It can't tell of it itself; the others raise, as nobody answers them."""
    place.write("train.py", KILLED)

    done = place.collect("--nproc-per-node", "2", "--standalone", "-p", "train.py")

    (line,) = [one for one in done.stderr.splitlines() if "failed first" in one]
    assert line.startswith("traincheck: rank 1 failed first (")
    assert line.endswith("): SIGKILL ended it; if nobody sent it, memory ran out")


@pytest.mark.torch
def test_one_process_says_itself_how_it_failed(place):
    """There is nobody who could have been the first."""
    place.write("train.py", "import torch\ntorch.ones(2)\nraise ValueError('of the program')\n")

    done = place.collect("-p", "train.py")

    assert "failed first" not in done.stderr
    assert not list((place.out).glob("failure_*"))
