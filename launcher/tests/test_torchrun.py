"""Ranks that torchrun starts: called by the launcher, or with the launcher in each of them."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.ranks]

TWO = ("--standalone", "--nproc-per-node", "2")
INSIDE = ("torchrun", *TWO, "-m", "traincheck_launcher")
# Rank 1 fails the first time, when the trace has its steps.
FAILING = """\
import os
exec(open("train.py").read())
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    import time
    time.sleep(1)  # for the other rank to end cleanly
    sys.exit(5)
"""
SHOWING = """\
import os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
print(*(os.environ.get(name) for name in names), __name__, __file__, sys.argv, sys.path[0])
sys.exit(int(sys.argv[1]))
"""


def headers_in(folder: Path) -> list[dict[str, Any]]:
    """Return the headers of the traces in a folder, by the name of their files."""
    traces = sorted(folder.glob("trace_r?_p*.json"))
    return [json.loads(trace.read_text().splitlines()[0]) for trace in traces]


def lines(text: str) -> list[str]:
    """Return the lines of two ranks in an order that does not depend on which was first."""
    return sorted(text.splitlines())


@pytest.mark.parametrize("launcher", [True, False], ids=["inside", "calls torchrun"])
def test_each_rank_is_what_it_is_without_us(place, launcher):
    """Rank, identity and arguments are those of plain torchrun; the exit code is passed on."""
    place.write("sub dir/train.py", SHOWING)
    script = ("-p", "sub dir/train.py", "--output-dir", "out", "--", "0", "a b")

    plain = place.run("torchrun", *TWO, "sub dir/train.py", "0", "a b", OMP_NUM_THREADS="1")
    if launcher:
        recorded = place.run(*INSIDE, *script, OMP_NUM_THREADS="1")
    else:
        recorded = place.run("traincheck-collect", *TWO, *script, OMP_NUM_THREADS="1")

    assert plain.returncode == recorded.returncode == 0, recorded.stderr
    assert lines(recorded.stdout) == lines(plain.stdout)
    assert recorded.stderr.count("traincheck: no trace was written") == 1


def test_the_exit_code_of_each_rank_is_that_of_its_program(place):
    """torchrun is told it as by the program itself."""
    place.write("train.py", SHOWING)

    result = place.run(*INSIDE, "-p", "train.py", "--output-dir", "out", "--", "3")

    assert result.returncode == 1
    assert "exitcode  : 3" in result.stderr


def test_one_rank_writes_what_is_common_and_tells(training):
    """In a folder that all ranks name alike by themselves; each has a log of its own."""
    result = training.run(*INSIDE, "-p", "train.py", "--models-to-track", "model", "--", "2")

    assert result.returncode == 0, result.stderr
    (folder,) = training.path.glob("traincheck_run_train_*")
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("trace_"))
    assert names == [
        *("_traincheck_train.py", "env_dump.txt", "program_output.txt", "program_output_r1.txt"),
        *("recording.json", "traincheck-entry.py"),
    ]
    headers = headers_in(folder)
    assert [one["rank"] for one in headers] == [0, 1]
    assert {one["run_id"] for one in headers} == {
        json.loads((folder / "recording.json").read_text())["run_id"]
    }
    assert result.stderr.count("traincheck: training steps seen: 2 on each of 2 ranks") == 1
    assert result.stderr.count("traincheck: next:") == 1


def test_ranks_that_wrote_elsewhere_are_missed(training):
    """As of a job on several machines, each with a folder of its own."""
    alone = "import os\nos.environ.update(RANK='0', WORLD_SIZE='2')\n"
    training.write("rank0.py", alone + (training.path / "train.py").read_text())

    result = training.collect("-p", "rank0.py", "--models-to-track", "model", "--", "2")

    assert result.returncode == 0, result.stderr
    assert "traincheck: rank 1 of 2 wrote nothing here: name the folders of all" in result.stderr


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "calls torchrun"])
def test_ranks_that_are_started_again_go_on_in_the_same_run(training, inside):
    """The traces of both starts are there, as one run; the first tells of its failure."""
    training.write("failing.py", FAILING)
    program = ("-p", "failing.py", "--output-dir", "out", "--", "2")
    options = (*TWO, "--max-restarts", "1")
    if inside:
        result = training.run("torchrun", *options, "-m", "traincheck_launcher", *program)
    else:
        result = training.run("traincheck-collect", *options, *program)

    headers = headers_in(training.out)
    assert result.returncode == 0, result.stderr
    assert sorted((one["rank"], one["restart"]) for one in headers) == [
        *((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    assert len({one["run_id"] for one in headers}) == 1
    assert result.stdout.count("weight") == 4
    logs = sorted(training.out.glob("program_output*.txt"))
    assert "".join(log.read_text() for log in logs).count("weight") == 4


def test_a_folder_of_an_earlier_run_is_refused_and_overwritten_by_all_ranks(training):
    """Once, by the rank that writes, however many there are."""
    command = (*INSIDE, "-p", "train.py", "--models-to-track", "model", "--output-dir", "out")

    training.run(*command, "--", "1")
    refused = training.run(*command, "--", "1")
    replaced = training.run(*command, "--overwrite", "--", "1")

    assert refused.returncode == 1  # torchrun's own
    assert refused.stderr.count("error: ") == 1
    assert "holds the traces of an earlier run" in refused.stderr
    assert refused.stdout == ""
    assert replaced.returncode == 0, replaced.stderr
    assert "training steps seen: 1 on each of 2 ranks" in replaced.stderr
    assert len(list(training.out.glob("trace_*"))) == 2


def test_a_port_that_is_taken_is_told(training):
    """What torchrun prints is passed on, and one line says what happened and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        result = training.collect(
            *("-p", "train.py", "--nproc-per-node", "2", "--rdzv-backend", "static"),
            *("--master-addr", "127.0.0.1", "--master-port", port, "--", "1"),
        )

    assert result.returncode == 1
    assert "EADDRINUSE" in result.stderr
    assert result.stderr.count(f"traincheck: port {port} of this machine is used by another") == 1


def test_a_torch_that_is_not_there_is_told(training):
    """Before anything runs; the option that asked for torchrun is named."""
    others = training.path / "others"  # all that is installed, but torch
    others.mkdir()
    for folder in (Path(path) for path in sys.path if Path(path).is_dir()):
        if folder.name in ("site-packages", "src"):
            for installed in folder.iterdir():
                if not (installed.name.startswith("torch") or (others / installed.name).exists()):
                    (others / installed.name).symlink_to(installed)

    result = training.run(
        *(sys.executable, "-S", "-m", "traincheck_launcher", "-p", "train.py", *TWO),
        PYTHONPATH=str(others),
    )

    assert result.returncode == 2
    assert result.stderr == (
        f"error: --nproc-per-node: torchrun is needed, and {sys.executable} has no torch; install "
        "torch there\n"
    )
