"""Processes that a program starts go on recording, and don't feel it: real ones, of each kind."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from traincheck_instrument.process.children import SpawnedChildren, carry_on
from traincheck_instrument.settings import RecordingSettings
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.validation import FileCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.torch

PROGRAM = """\
import os, pathlib, subprocess, sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset
import loop

method, folder = sys.argv[1], pathlib.Path(sys.argv[2])
(folder / f"identity_{os.getpid()}").write_text(repr([
    __name__, __file__, sys.argv, sys.path[0], os.getcwd(), __spec__,
    sorted(name for name in os.environ if name.startswith("TRAINCHECK")),
]))

class Data(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.nn.functional.relu(torch.ones(3))

def rank_main(rank, folder):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    model = torch.nn.Linear(3, 2)
    loop.fit(model, [torch.ones(3)] * 2)
    torch.distributed.destroy_process_group()

def leave_at_once():
    torch.nn.functional.relu6(torch.ones(1))
    os._exit(3)

def fail(*_):
    torch.nn.functional.relu6(torch.ones(1))
    raise ValueError("of the program")

def run_ranks():
    mp.start_processes(rank_main, args=(folder,), nprocs=2, start_method=method)

def run_failing():
    process = mp.get_context(method).Process(target=fail)
    process.start()
    process.join()
    print("fail", process.exitcode)

def run_failing_rank():
    try:
        mp.start_processes(fail, start_method=method)
    except mp.ProcessRaisedException as error:
        print("rank failed", "of the program" in str(error))

def run_leaving():
    process = mp.get_context(method).Process(target=leave_at_once)
    process.start()
    process.join()
    print("left", process.exitcode)

# A process that is not forked imports torch anew, which takes seconds.
RUNS = {
    "fork": [run_ranks, run_failing, run_failing_rank, run_leaving],
    "spawn": [run_ranks],
    "forkserver": [run_failing],
}

def main():
    model = torch.nn.Linear(3, 2)
    batches = DataLoader(
        Data(), num_workers=1, persistent_workers=True, multiprocessing_context=method
    )
    for epoch in range(2):
        loop.fit(model, batches)
    del batches
    for run in RUNS[method]:
        run()
    code = "import sys, os; print(sys.path[1:]); print(sorted(os.environ))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    print(other == f"{os.environ['PLAIN_PATH']}{sorted(os.environ)}\\n")

if __name__ == "__main__":
    main()
"""
LOOP = """\
import torch

def fit(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


@attrs.frozen
class Run:
    """What came of a program."""

    folder: Path
    method: str
    result: subprocess.CompletedProcess[str]

    def shards(self) -> Iterator[list[dict[str, object]]]:
        """Yield the records of each trace, which must be valid as a whole."""
        for path in sorted((self.folder / "out").glob("trace_*.json")):
            assert [*FileCheck(path).problems()] == []
            yield [loads(line) for line in path.read_text().splitlines()]

    def calling(self, function: str, *, role: str) -> list[list[dict[str, object]]]:
        """Return the traces of processes of a role that call a function."""
        return [
            records
            for records in self.shards()
            if headers(records)[-1]["role"] == role
            and any(one.get("function") == function for one in records)
        ]


def headers(records):
    return [one for one in records if one["kind"] == "header"]


def steps(records):
    return [one["step"] for one in records if one["kind"] == "step"]


@pytest.fixture(scope="module", params=["fork", "spawn", "forkserver"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    out = folder / "out"
    out.mkdir()
    (folder / "loop.py").write_text(LOOP)
    (folder / "train.py").write_text(PROGRAM)
    settings = RecordingSettings(
        script=folder / "train.py",
        output_dir=out,
        run_id="r",
        models=("model",),
        steps_from="source",
    )
    settings.write(folder / "r.json")
    (out / "entry.py").write_text(
        "from traincheck_instrument.entry import run_program\n"
        f"run_program({str(folder / 'r.json')!r})\n"
    )
    plain = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.path[1:])"],
        capture_output=True,
        text=True,
        check=True,
    )
    result = subprocess.run(
        [sys.executable, str(out / "entry.py"), request.param, str(folder)],
        cwd=folder,
        env={
            **os.environ,
            "TRAINCHECK_ARGV0": "train.py",
            "OMP_NUM_THREADS": "1",
            "PLAIN_PATH": plain.stdout,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return Run(folder, request.param, result)


def test_every_process_is_who_it_is(run):
    """Name, file, arguments, path, folder and environment are those of a plain Python."""
    told = [ast.literal_eval(path.read_text()) for path in run.folder.glob("identity_*")]

    script, argv = str(run.folder / "train.py"), [run.method, str(run.folder)]
    rest = [str(run.folder), str(run.folder), None, []]
    count = {"fork": 0, "spawn": 3, "forkserver": 2}[run.method]
    assert sorted(told) == [
        ["__main__", script, ["train.py", *argv], *rest],
        *[["__mp_main__", script, [script, *argv], *rest]] * count,
    ]


def test_a_worker_of_a_data_loader_is_recorded(run):
    """It calls code of the program; it ends without `atexit`, and yet cleanly, in each epoch."""
    (worker,) = run.calling("torch.utils.data.default_collate", role="worker")

    assert sum(one.get("function") == "torch.nn.functional.relu" for one in worker) >= 2 * 4
    assert worker[-1]["kind"] == "footer"
    assert headers(worker)[-1]["rank"] == 0


def test_spawned_ranks_are_ranks(run):
    """The header is told again when they join; the loop of a module is marked there, too."""
    ranks = run.calling("torch.distributed.init_process_group", role="main")
    if run.method == "forkserver":
        assert not ranks
        return

    last = [headers(records)[-1] for records in ranks]
    assert sorted((one["rank"], one["world_size"], one["steps_from"]) for one in last) == [
        (0, 2, "source"),
        (1, 2, "source"),
    ]
    for records in ranks:
        first = 4 if run.method == "fork" else 0  # a forked one goes on counting
        assert steps(records) == [first, first + 1]
        assert records[-1]["kind"] == "footer"
        assert any(one["kind"] == "var" and "model.weight" in one["names"] for one in records)


def test_a_process_that_fails_is_no_clean_end(run):
    """Its exception is told by multiprocessing as ever; its trace has no footer."""
    failed = run.calling("torch.nn.functional.relu6", role="worker")

    # One of them leaves by os._exit.
    assert len(failed) == {"fork": 3, "spawn": 0, "forkserver": 1}[run.method]
    assert not [one for records in failed for one in records if one["kind"] == "footer"]
    assert "traincheck" not in run.result.stderr
    told = {
        "fork": "fail 1\nrank failed True\nleft 3\n",
        "spawn": "",
        "forkserver": "fail 1\n",
    }[run.method]
    assert run.result.stdout == f"{told}True\n"
    assert ("ValueError: of the program" in run.result.stderr) == bool(told)


def test_other_processes_are_left_alone(run):
    """Path and environment of a subprocess are those that it would have."""
    assert run.result.stdout.endswith("True\n")


def test_the_main_process_is_recorded_to_its_end(run):
    """Whatever its children do, its steps are its own."""
    (main,) = [
        records
        for records in run.shards()
        if headers(records)[0]["role"] == "main" and headers(records)[-1]["world_size"] == 1
    ]

    assert steps(main) == [0, 1, 2, 3]
    assert main[-1]["kind"] == "footer"


def test_a_run_of_all_of_them_can_be_read(run):
    """The shards are of one run."""
    trace = open_run(sorted((run.folder / "out").glob("trace_*.json")))

    assert sum(1 for _ in trace.stream()) > 100


def test_no_code_with_marks_is_left_in_a_cache(run):
    """Neither the script nor its module leaves a cache that another run would take."""
    assert not (run.folder / "__pycache__").exists()


@pytest.fixture
def children(tmp_path):
    """Have processes told to record, and the data by which they are told."""
    from multiprocessing import spawn  # noqa: PLC0415  as the program does

    telling = SpawnedChildren(RecordingSettings(output_dir=tmp_path, run_id="r"))
    telling.install()
    yield spawn.get_preparation_data("a process")
    telling.uninstall()
    assert "traincheck" not in spawn.get_preparation_data("a process")


def test_a_python_without_this_package_runs_the_process_all_the_same(children):
    """The program may choose another Python for its processes; this is told in one line."""
    function, (text, names) = children["traincheck"].__reduce__()

    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=False
    )

    assert (function, names) == (exec, {})
    assert result.returncode == 0
    assert result.stderr.startswith(f"traincheck: {sys.executable} runs a process unrecorded")
    assert result.stderr.count("\n") == 1


def test_what_a_process_cannot_read_does_not_stop_it(capsys):
    """A fault of ours in a child is told on its stderr."""
    carry_on("{}", None)

    assert capsys.readouterr().err.startswith("traincheck: recording could not begin in a process")
