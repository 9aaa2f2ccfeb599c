"""Ranks and groups of ranks in the header, as the program makes them."""

import json
import os
import subprocess
import sys
import textwrap
from itertools import pairwise

import pytest
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

import traincheck_instrument as traincheck
from traincheck_instrument.process.identity import Identity
from traincheck_instrument.process.meshes import Meshes
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.reading import WindowEnd, open_run
from traincheck_trace_schema.validation import FileCheck

RANKS = 4

# Stand in for the libraries: they define the functions by which these tell their groups.
MEGATRON = """
GROUPS = {}
def get_data_parallel_group(with_context_parallel=False):
    assert "dp" in GROUPS, "data parallel group is not initialized"
    return GROUPS["dp"]
def get_tensor_model_parallel_group(check_initialized=True):
    assert "tp" in GROUPS, "tensor model parallel group is not initialized"
    return GROUPS["tp"]
def get_pipeline_model_parallel_group():
    return [GROUPS["dp"], GROUPS["tp"]]
"""
DEEPSPEED = """
from torch import distributed
mpu = mesh_device = None
_EXPERT_PARALLEL_GROUP = {}
def get_data_parallel_group():
    assert False, "data parallel group is not initialized"
def _get_data_parallel_group():
    return distributed.new_group(range(distributed.get_world_size()))
def _get_max_expert_parallel_group():
    return _EXPERT_PARALLEL_GROUP["ep_size_2"]
"""
PROGRAM = """
import sys
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh

import traincheck_instrument as traincheck
from traincheck_instrument import session
from traincheck_instrument.settings import RecordingSettings

FOLDER = Path(sys.argv[1])


def rank(number, size):
    settings = RecordingSettings(
        script=Path(__file__), output_dir=FOLDER, run_id="run", steps_from="hand"
    )
    recording = session.begin(settings, **({"is_worker": True} if number == 3 else {}))
    recording.recorder.faults.strict = True
    nn.ReLU()(torch.ones(2))
    traincheck.start_step()

    store = distributed.FileStore(str(FOLDER / "store"), size)
    distributed.init_process_group("gloo", store=store, rank=number, world_size=size)
    for pair in ((0, 1), (2, 3)):
        distributed.new_group(pair)
    distributed.new_group((0, 2), group_desc="EMBEDDING_GROUP")
    model = traincheck.track(nn.Linear(2, 2), name="model")
    traincheck.start_step()

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    whole = init_device_mesh("cpu", (size,), mesh_dim_names=("Fsdp",))
    traincheck.start_step()

    import deepspeed.utils.groups as deepspeed
    import megatron.core.parallel_state as megatron
    deepspeed._EXPERT_PARALLEL_GROUP["ep_size_2"] = mesh.get_group("tp")
    # The other way round than the mesh has them.
    megatron.GROUPS.update(dp=mesh.get_group("tp"), tp=mesh.get_group("dp"))
    known = len(distributed.distributed_c10d._world.pg_names)
    traincheck.start_step()
    assert len(distributed.distributed_c10d._world.pg_names) == known
    traincheck.start_step()
    session.end(clean=True)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.start_processes(rank, (4,), nprocs=4, start_method="fork")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a job of four ranks that makes groups step by step; return what each rank wrote."""
    folder = tmp_path_factory.mktemp("job")
    for path, text in {
        "program.py": PROGRAM,
        "megatron/core/parallel_state.py": MEGATRON,
        "deepspeed/utils/groups.py": DEEPSPEED,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(textwrap.dedent(text))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, folder / "program.py", folder],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def shards(run):
    """Return the records of each rank, by its last header."""
    found = {}
    for path in run.glob("trace_*.json"):
        assert [*FileCheck(path).problems()] == []
        records = [loads(line) for line in path.read_text().splitlines()]
        found[headers(records)[-1]["rank"]] = records
    return found


def headers(records):
    return [record for record in records if record["kind"] == "header"]


def groups_at(records, step):
    """Return the groups that hold when a step begins."""
    held = None
    for record in records:
        if record["kind"] == "header":
            held = record["groups"]
        elif record["kind"] == "step" and record["step"] == step:
            return held
    raise AssertionError(step)


def test_a_process_tells_its_rank_as_soon_as_it_has_one(shards):
    """Before the group is made it is alone; the header is told again when a model is tracked."""
    assert sorted(shards) == list(range(RANKS))
    for rank, records in shards.items():
        first, second, *_ = headers(records)
        assert (first["rank"], first["world_size"], first["groups"]) == (0, 1, {"world": [0]})
        assert (second["rank"], second["local_rank"], second["world_size"]) == (rank, rank, RANKS)
        kinds = [record["kind"] for record in records]
        assert kinds.index("header", 1) < kinds.index("var")


def test_one_that_was_started_as_a_worker_is_a_rank_once_it_joins(shards):
    """A spawned process can't be told from a worker before."""
    assert [header["role"] for header in headers(shards[3])][:2] == ["worker", "main"]


def test_groups_are_named_by_their_description_or_their_order(shards):
    """`new_group`: by `group_desc`; without one by the order in which this rank made them."""
    described = {"world": [0, 1, 2, 3], "group_0": [0, 1], "embedding": [0, 2]}
    assert groups_at(shards[0], 1) == described
    assert groups_at(shards[3], 1) == {"world": [0, 1, 2, 3], "group_0": [2, 3]}


def test_the_dimensions_of_meshes_are_groups(shards):
    """Under their names, the common ones written out; also one that is the whole world."""
    told = groups_at(shards[3], 2)
    assert told["data_parallel"] == [1, 3]
    assert told["tensor_parallel"] == [2, 3]
    assert told["fsdp"] == [0, 1, 2, 3]
    assert "group_0" not in told  # it has a better name now


def test_libraries_are_asked_for_their_groups(shards):
    """Megatron and DeepSpeed, where they are imported; what they refuse is left out."""
    told = groups_at(shards[3], 3)
    assert told["data_parallel"] == [2, 3]
    assert told["tensor_parallel"] == [1, 3]
    assert told["expert_parallel"] == [2, 3]
    assert "pipeline_parallel" not in told


def test_nothing_is_told_twice(shards):
    """The header is told again where a fact has changed, and no step makes a group."""
    for records in shards.values():
        told = headers(records)
        facts = [(one["role"], one["rank"], one["world_size"], one["groups"]) for one in told]
        assert all(before != after for before, after in pairwise(facts))
        assert len(told) <= 4


def test_readers_put_each_process_where_its_last_header_says(run):
    """To a reader of the whole job no rank is missing, though all began as rank 0."""
    job = open_run([run])
    ends = [item for item in job.stream() if isinstance(item, WindowEnd)]

    assert job.incomplete_because() == ()
    assert [end.without for end in ends[-2:]] == [(), ()]


def test_a_rank_that_the_environment_tells_is_told_once(record, monkeypatch):
    """Under torchrun the first header says all; joining the job adds nothing to it."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with record() as run:
        traincheck.track(nn.Linear(1, 1))
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        try:
            traincheck.start_step()
        finally:
            distributed.destroy_process_group()
        traincheck.start_step()

    assert len(run.records("header")) == 1


def test_a_forked_worker_keeps_the_rank_of_its_parent():
    """It has inherited the job, and joined none."""
    identity = Identity()
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        identity.become_worker()
        assert not identity.refresh(Meshes())
    finally:
        distributed.destroy_process_group()

    assert json.loads(json.dumps(identity.fields()))["role"] == "worker"


def test_meshes_are_followed_and_not_kept():
    """A mesh that is gone has no dimensions; afterwards the class is what it was."""
    original = vars(DeviceMesh)["__init__"]
    meshes = Meshes()
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        meshes.install()
        meshes.install()
        mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))
        assert [name for name, _ in meshes.dimensions()] == ["dp"]
        del mesh
        assert [*meshes.dimensions()] == []
    finally:
        meshes.uninstall()
        meshes.uninstall()
        distributed.destroy_process_group()

    assert vars(DeviceMesh)["__init__"] is original
