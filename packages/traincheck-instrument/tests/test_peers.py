"""How ranks agree where they stop: real processes, joined by torch.distributed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.torch, pytest.mark.ranks]

# Each rank has a list of what it does before each pass; those that compute together meet within it.
PROGRAM = """\
import pathlib, sys, time
import torch.distributed as dist
import torch.multiprocessing as mp
from traincheck_instrument.gate import peers as module

module._PATIENCE_SECONDS = 1000.0

def main(rank, folder, case):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=3)
    peers, stopped = module.Peers(), 0
    for number in range(1, 20):
        # The others learn of the violation one after the other, and this rank is slow.
        time.sleep(0.02 * rank)
        asked = number >= 3 + (rank if case == "late" else 0)
        if case == "one ends" and rank == 2 and number == 2:
            peers.leave(number)
            break
        if asked and peers.agree_to_stop(number):
            stopped = number
            break
        peers.tell("passed", number)
        if case != "one ends":
            dist.barrier()  # within the pass: who stops alone lets the others wait for ever
    (pathlib.Path(folder) / f"rank{rank}").write_text(str(stopped))
    if stopped:
        peers.leave(stopped)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(main, args=(sys.argv[1], sys.argv[2]), nprocs=3)
"""


def _stopped(folder: Path, case: str) -> list[int]:
    (folder / "ranks.py").write_text(PROGRAM)
    subprocess.run(
        [sys.executable, "ranks.py", str(folder), case], cwd=folder, check=True, timeout=100
    )
    return [int((folder / f"rank{rank}").read_text()) for rank in range(3)]


def test_ranks_that_are_asked_at_once_stop_there(tmp_path: Path) -> None:
    """Before the pass at which all of them learnt of it."""
    assert _stopped(tmp_path, "at once") == [3, 3, 3]


def test_ranks_that_learn_of_it_late_take_the_others_along(tmp_path: Path) -> None:
    """Those that know of it first go on with who has gone on."""
    assert _stopped(tmp_path, "late") == [5, 5, 5]


def test_a_rank_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    """The others agree without it."""
    first, second, ended = _stopped(tmp_path, "one ends")

    assert first == second >= 3
    assert ended == 0
