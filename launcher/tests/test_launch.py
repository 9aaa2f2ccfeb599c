"""Each command finds out by itself which part it has in a run, and all of them agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from traincheck_launcher.options import CollectOptions
from traincheck_launcher.starting.launch import launch_of
from traincheck_trace_schema.errors import ConfigError


def options(*torchrun: str, run_id: str | None = None) -> CollectOptions:
    return CollectOptions(pyscript=Path("train.py"), torchrun=torchrun, run_id=run_id)


def rank(folder: Path, number: int, **others: object) -> dict[str, str]:
    """Return what torchrun tells one of two ranks of a machine."""
    attempt = folder / f"attempt_{others.get('TORCHELASTIC_RESTART_COUNT', 0)}"
    attempt.mkdir(parents=True, exist_ok=True)
    facts = {
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_ERROR_FILE": attempt / str(number) / "error.json",
        "TORCHELASTIC_RESTART_COUNT": 0,
        "RANK": number,
        "LOCAL_RANK": number,
        "WORLD_SIZE": 2,
        "GROUP_WORLD_SIZE": 1,
        **others,
    }
    return {name: str(value) for name, value in facts.items()}


def test_by_itself_a_command_is_all_of_a_run():
    """Each has a name of its own, and nobody to wait for."""
    one, other = launch_of(options(), {}), launch_of(options("--nproc-per-node=2"), {})

    assert one.run_id != other.run_id
    for launch in (one, other):
        assert (launch.leads, launch.tells, launch.waits, launch.part) == (True, True, False, "")
        assert not launch.rejoins


def test_the_ranks_of_one_torchrun_agree_and_those_of_another_do_not(tmp_path):
    """Name and folder of the run are the same in all ranks; the first writes and tells."""
    first, second = (launch_of(options(), rank(tmp_path / "a", number)) for number in (0, 1))
    other = launch_of(options(), rank(tmp_path / "b", 0))

    assert (first.run_id, first.suffix) == (second.run_id, second.suffix)
    assert first.run_id != other.run_id
    assert (first.leads, first.tells, first.part) == (True, True, "")
    assert (second.leads, second.tells, second.part) == (False, False, "r1")
    assert first.ready == second.ready != other.ready


def test_a_restart_is_the_same_run(tmp_path):
    """torchrun starts the ranks again below the same folder."""
    before = launch_of(options(), rank(tmp_path, 0))
    after = launch_of(options(), rank(tmp_path, 0, TORCHELASTIC_RESTART_COUNT=1))

    assert (before.run_id, before.suffix) == (after.run_id, after.suffix)
    assert (before.rejoins, after.rejoins) == (False, True)


def test_several_machines_go_by_the_name_of_the_job(tmp_path):
    """On each the first rank writes what its ranks have in common; only one of them tells."""
    job = {"TORCHELASTIC_RUN_ID": "job 7", "GROUP_WORLD_SIZE": 2, "WORLD_SIZE": 4}

    here = launch_of(options(), rank(tmp_path / "a", 0, **job))
    there = launch_of(options(), rank(tmp_path / "b", 2, LOCAL_RANK=0, **job))

    assert (here.run_id, here.suffix) == (there.run_id, there.suffix) == ("job 7", "job_7")
    assert (here.leads, here.tells) == (True, True)
    assert (there.leads, there.tells) == (True, False)
    assert here.ready != there.ready
    assert not here.rejoins
    assert launch_of(options(), rank(tmp_path, 0, TORCHELASTIC_RESTART_COUNT=1, **job)).rejoins


@pytest.mark.parametrize(
    ("torchrun", "run_id", "environment", "name", "part"),
    [
        (("--nnodes=2", "--node-rank=1", "--rdzv-id=job"), None, {}, "job", "node1"),
        (("--nnodes=2", "--node-rank=1", "--rdzv-id=job"), "mine", {}, "mine", "node1"),
        (("--nnodes=1:4", "--node-rank=0"), "mine", {}, "mine", "node0"),
        (
            ("--nproc-per-node=2",),
            None,
            {"PET_NNODES": "2", "PET_RDZV_ID": "x", "PET_NODE_RANK": "3"},
            "x",
            "node3",
        ),
        (("--nnodes=1", "--node-rank=0"), "mine", {}, "mine", ""),
    ],
)
def test_a_command_that_calls_torchrun_goes_by_what_it_tells_it(
    torchrun, run_id, environment, name, part
):
    """As an option or as a variable; `--run-id` wins."""
    launch = launch_of(options(*torchrun, run_id=run_id), environment)

    assert (launch.run_id, launch.part) == (name, part)


@pytest.mark.parametrize(
    ("torchrun", "environment", "message"),
    [
        (("--nnodes=2",), {}, "--nnodes 2: the machines must know .* --rdzv-id or --run-id"),
        (("--nnodes=1:2", "--rdzv-id=none"), {}, "--nnodes 1:2: the machines must know"),
        (
            (),
            {"TORCHELASTIC_RUN_ID": "none", "GROUP_WORLD_SIZE": "2"},
            "torchrun on several machines: the machines must know",
        ),
        (
            ("--standalone", "--nproc-per-node=2"),
            {"TORCHELASTIC_RUN_ID": "x"},
            "--standalone: torchrun has started this command already",
        ),
        ((), {"TORCHELASTIC_RUN_ID": "x"}, "TORCHELASTIC_ERROR_FILE.* leave out --logs-specs"),
    ],
)
def test_parts_that_cannot_know_one_another_are_refused(torchrun, environment, message):
    """The message says what to give."""
    with pytest.raises(ConfigError, match=message):
        launch_of(options(*torchrun), environment)
