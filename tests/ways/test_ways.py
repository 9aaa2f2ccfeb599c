"""However a program is started, the same is recorded of it."""

from __future__ import annotations

import importlib.util

import attrs
import pytest

pytestmark = [pytest.mark.torch, pytest.mark.ranks]

COLLECT = "traincheck-collect --output-dir out"
SHELL = f"{COLLECT} --shscript run.sh --pyscript"
ONE, RANKS = "digits_cnn", "ddp_digits"
TWO = "--standalone --nproc-per-node 2"
NODES = "traincheck-collect --nproc-per-node 1 --nnodes 2 --pyscript ddp_digits.py"
STATIC = f"{NODES} --master-addr 127.0.0.1 --master-port PORT --rdzv-id job"
C10D = f"{NODES} --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:PORT --run-id job"
INSIDE = "torchrun --nproc-per-node 1 --nnodes 2 --rdzv-id job --rdzv-backend c10d"
HAS_ACCELERATE = importlib.util.find_spec("accelerate") is not None


@attrs.frozen
class Way:
    """A way to start a workload."""

    workload: str
    commands: tuple[str, ...]
    script: str = ""  # the shell script, if there is one
    arguments: tuple[str, ...] = ()  # beside those of the workload
    times: int = 1  # that each rank runs
    outs: tuple[str, ...] = ("out",)


def shell(line: str, workload: str = ONE, *, path: str = "", times: int = 1) -> Way:
    """Return the way of a shell script with this line."""
    return Way(workload, (f"{SHELL} '{path or workload}.py'",), f"{line}\n", times=times)


CORE = {
    "module": Way(ONE, (f"{COLLECT} --module pkg.digits_cnn",)),
    "module, by a shell script": shell('python -um pkg.digits_cnn "$@"', path="pkg/digits_cnn"),
    "launcher calls torchrun": Way(RANKS, (f"{COLLECT} --pyscript ddp_digits.py {TWO}",)),
    "launcher inside torchrun": Way(
        RANKS, (f"torchrun {TWO} -m traincheck_launcher --output-dir out --pyscript ddp_digits.py",)
    ),
}
REST = {
    "shell script, named by -m": Way(
        ONE,
        (f"{COLLECT} --shscript run.sh --module pkg.digits_cnn",),
        'python -m pkg.digits_cnn "$@"\n',
    ),
    "package": Way(ONE, (f"{COLLECT} --module pkg",)),
    "python": shell('python digits_cnn.py "$@"'),
    "python -u": shell('python -u -W ignore digits_cnn.py "$@"'),
    "env": shell('env VAR=1 python digits_cnn.py "$@"'),
    "exec": shell('exec python digits_cnn.py "$@"'),
    "here-document": shell('python digits_cnn.py "$@" <<END\ntext\nEND'),
    "twice": shell('for i in 1 2; do python digits_cnn.py "$@"; done', times=2),
    "cd, spaces": shell('cd "sub dir"\npython digits_cnn.py "$@"', path="sub dir/digits_cnn"),
    "subprocess": shell(
        "python -c 'import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])' "
        'digits_cnn.py "$@"'
    ),
    "accelerate": shell('accelerate launch --cpu --num_processes 1 digits_cnn.py "$@"'),
    "fork": Way(ONE, (f"{COLLECT} --pyscript child.py",), arguments=("fork",)),
    "spawn": Way(ONE, (f"{COLLECT} --pyscript child.py",), arguments=("spawn",)),
    "forkserver": Way(ONE, (f"{COLLECT} --pyscript child.py",), arguments=("forkserver",)),
    "python -m torch.distributed.run": shell(
        f'python -m torch.distributed.run {TWO} ddp_digits.py "$@"', RANKS
    ),
    "torchrun -m, by a shell script": shell(
        f'torchrun {TWO} -m pkg.ddp_digits "$@"', RANKS, path="pkg/ddp_digits"
    ),
    "accelerate, 2 ranks": shell(
        'accelerate launch --multi_gpu --num_processes 2 --num_machines 1 ddp_digits.py "$@"', RANKS
    ),
    "launcher calls torchrun, module": Way(RANKS, (f"{COLLECT} -m pkg.ddp_digits {TWO}",)),
    "torchrun --no-python": Way(
        RANKS, (f"torchrun {TWO} --no-python {COLLECT} --pyscript ddp_digits.py",)
    ),
    "torch.multiprocessing.spawn": Way(RANKS, (f"{COLLECT} --pyscript spawned.py",)),
    "2 nodes, static, one folder": Way(
        RANKS, tuple(f"{STATIC} --node-rank {node} --output-dir out" for node in (0, 1))
    ),
    "2 nodes, static, two folders": Way(
        RANKS,
        tuple(f"{STATIC} --node-rank {node} --output-dir out{node}" for node in (0, 1)),
        outs=("out0", "out1"),
    ),
    "2 nodes, c10d, one folder": Way(RANKS, (f"{C10D} --output-dir out",) * 2),
    "2 nodes, launcher inside torchrun": Way(
        RANKS,
        tuple(
            f"{INSIDE} --rdzv-endpoint 127.0.0.1:PORT -m traincheck_launcher "
            f"--output-dir out{node} --pyscript ddp_digits.py"
            for node in (0, 1)
        ),
        outs=("out0", "out1"),
    ),
}


def _parameters():
    for name, way in {**CORE, **REST}.items():
        marks = [] if name in CORE else [pytest.mark.matrix]
        if "accelerate" in name:
            why = "accelerate is not installed"
            marks.append(pytest.mark.skipif(not HAS_ACCELERATE, reason=why))
        yield pytest.param(name, way, id=name, marks=marks)


@pytest.mark.parametrize(("name", "way"), [*_parameters()])
def test_the_same_is_recorded_in_each_way(runs, plain, record_property, name, way):
    """Each rank has the steps, calls and changes of the plain way, and all are of one run."""
    said = runs.start(way.commands, way.script, *way.arguments)

    found, by_itself = runs.recorded(*way.outs), plain(way.workload)
    for what, of in ((name, found), (f"plain {way.workload}", by_itself)):
        each = "; ".join(f"rank {rank}: {those[0]}" for rank, those in of.items())
        record_property("table", f"{what}: {each}")
    assert found == {rank: those * way.times for rank, those in by_itself.items()}, said
    assert said.count("traincheck: trace in") == 1 or len(way.outs) > 1
