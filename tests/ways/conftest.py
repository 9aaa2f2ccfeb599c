"""Starts the workloads in whatever way, and tells what was recorded of them."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from traincheck_trace_schema.codec import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKLOADS = Path(__file__).parent.parent / "workloads"
MODELS = ("--models-to-track", "model", "--")
ARGUMENTS = ("--steps", "3", "--timings", "timings.json")
# The workloads' own functions are called after the module that they run as.
OWN = re.compile(r"^(?:pkg\.)?(?:__main__|__mp_main__|digits_cnn|ddp_digits)\.")

# Run the workload in a process of its own, as a script does that starts its workers itself.
CHILD = """\
import multiprocessing
import sys

import digits_cnn

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv.pop(1))
    process = context.Process(target=digits_cnn.main)
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""
SPAWNED = """\
import os
import socket

import torch
import torch.multiprocessing

import ddp_digits

def work(rank, port):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    ddp_digits.main()

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    torch.multiprocessing.spawn(work, (port,), nprocs=2)
"""


@attrs.frozen
class Recorded:
    """What was recorded of one process that trained."""

    steps: tuple[int, ...]
    eval_steps: int
    functions: Counter[str]  # calls by function
    changes: Counter[str]  # by variable

    def __str__(self) -> str:
        return (
            f"{len(self.steps)} steps, {self.eval_steps} evaluation steps, "
            f"{len(self.functions)} functions, {sum(self.functions.values())} calls, "
            f"{sum(self.changes.values())} changes"
        )


@attrs.frozen
class Runs:
    """The programs in a folder, and what was recorded of their runs."""

    bench: Any

    def start(self, commands: tuple[str, ...], script: str, *arguments: str) -> str:
        """Run commands, all at the same time, and return what they printed.

        Args:
            commands: What is run, without what all of them have in common; `PORT` in them is one
                that was free a moment ago.
            script: The shell script that some of them start.
            arguments: Of the program, beside those of the workload.
        """
        self.bench.add("run.sh", script)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
        processes = [
            subprocess.Popen(
                [*shlex.split(command.replace("PORT", port)), *MODELS, *arguments, *ARGUMENTS],
                cwd=self.bench.folder,
                env=self.bench.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for command in commands
        ]
        said = [process.communicate(timeout=300)[0] for process in processes]
        told = "\n".join(said)
        assert [process.returncode for process in processes] == [0] * len(processes), told
        return told

    def recorded(self, *outs: str) -> dict[int, list[Recorded]]:
        """Return what each process recorded that trained, by rank, and check that it is one run."""
        found: dict[int, list[Recorded]] = {}
        names = set()
        for out in outs:
            for shard in sorted((self.bench.folder / out).glob("trace_*.json")):
                records = [loads(line) for line in shard.read_text().splitlines()]
                names.add(records[0]["run_id"])
                # A process that joins a job tells its header again.
                rank = [one for one in records if one["kind"] == "header"][-1]["rank"]
                if any(one["kind"] == "step" for one in records):
                    assert records[-1]["kind"] == "footer", shard
                    found.setdefault(rank, []).append(_recorded(records))
        assert len(names) == 1
        return found


def _recorded(records: list[dict[str, Any]]) -> Recorded:
    steps = [one for one in records if one["kind"] == "step"]
    calls = (one["function"] for one in records if one["kind"] == "call_begin")
    changes = (one for one in records if one["kind"] == "var" and one["event"] == "changed")
    return Recorded(
        steps=tuple(one["step"] for one in steps if one.get("eval_step") is None),
        eval_steps=sum(one.get("eval_step") is not None for one in steps),
        functions=Counter(OWN.sub("", name) for name in calls),
        changes=Counter(one["names"][0] for one in changes),
    )


@pytest.fixture
def runs(bench) -> Runs:
    """The workloads, as scripts and as modules of a package, and what starts them."""
    return _runs(bench)


@pytest.fixture(scope="module")
def plain(module_bench) -> Iterator[Callable[[str], dict[int, list[Recorded]]]]:
    """Return what is recorded of a workload in its plain way, which is run once."""
    runs = _runs(module_bench)
    found: dict[str, dict[int, list[Recorded]]] = {}

    def of(workload: str) -> dict[int, list[Recorded]]:
        if workload not in found:
            shell = "" if workload == "digits_cnn" else " --shscript run.sh"
            runs.start(
                (f"traincheck-collect --pyscript {workload}.py{shell} --output-dir {workload}",),
                f'torchrun --standalone --nproc-per-node 2 {workload}.py "$@"\n',
            )
            found[workload] = runs.recorded(workload)
        return found[workload]

    return of


def _runs(bench: Any) -> Runs:
    for workload in ("digits_cnn", "ddp_digits"):
        for place in (".", "pkg", "sub dir"):
            (bench.folder / place).mkdir(exist_ok=True)
            shutil.copy(WORKLOADS / f"{workload}.py", bench.folder / place)
    bench.add("pkg/__init__.py", "")
    shutil.copy(WORKLOADS / "digits_cnn.py", bench.folder / "pkg" / "__main__.py")
    bench.add("child.py", CHILD)
    bench.add("spawned.py", SPAWNED)
    return Runs(bench)
