"""Checking a run while it goes on: real programs, followed by a process beside them."""

import shutil
import signal
import time
from pathlib import Path

import pytest

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.results_file import SUMMARY_NAME

HERE = Path(__file__).parent
PROGRAM = """
import sys, time
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    if step < int(sys.argv[2]):
        optimizer.step()
    time.sleep(0.02)
"""
# Name, ranks, arguments; the rest of the workloads take minutes: `hatch run promises`.
WORKLOADS = [
    ("digits_cnn", 1, ("--steps", "20")),
    ("ddp_digits", 2, ("--steps", "20")),
    *(
        pytest.param(name, 1, ("--steps", "20"), marks=pytest.mark.matrix)
        for name in (
            *("char_lstm", "char_transformer", "dcgan_digits"),
            *("digits_mlp_amp", "digits_vae", "gcn_synthetic"),
        )
    ),
]


@pytest.mark.torch
@pytest.mark.ranks
@pytest.mark.parametrize(("name", "ranks", "arguments"), WORKLOADS)
def test_a_run_that_is_followed_gets_the_verdicts_of_one_that_has_ended(
    bench, name, ranks, arguments
):
    """The same files, byte for byte, whichever way the ranks' records came."""
    bench.add("train.py", (HERE / "workloads" / f"{name}.py").read_text())
    bench.collect("train.py", "t_learnt", "--", *arguments, ranks=ranks)
    bench.infer("t_learnt")

    with bench.followed("t_run", "live"):
        bench.collect("train.py", "t_run", "--", *arguments, ranks=ranks)
    summary = bench.check("t_run", "finished", code=0)

    assert summary["passed"] > 0
    bench.assert_same_results("live", "finished")


@pytest.fixture(scope="module")
def reference(module_bench):
    module_bench.add("train.py", PROGRAM)
    module_bench.collect("train.py", "t_learnt", "--", 10, 10)
    module_bench.infer("t_learnt")
    return module_bench.folder


@pytest.fixture
def learnt(bench, reference):
    """Return a folder with the program, its trace, and the invariants that it gave."""
    shutil.copytree(reference, bench.folder, dirs_exist_ok=True)
    return bench


def _until(is_so, seconds=60.0):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.torch
def test_a_violation_is_told_while_the_run_goes_on(learnt):
    """On the terminal and in the summary, long before the program ends."""
    collect = ("traincheck-collect", "--pyscript", "train.py", "--models-to-track", "model")
    summary = learnt.folder / "live" / SUMMARY_NAME
    check = ("traincheck-onlinecheck", "-f", "t", "-i", "invariants.json", "-o", "live")
    with (
        learnt.start(*collect, "--output-dir", "t", "--", 1000, 5) as run,
        learnt.start(*check) as live,
    ):
        line = live.stdout.readline()
        _until(lambda: summary.exists() and loads(summary.read_text())["failed"])
        assert run.poll() is None
        told = loads(summary.read_text())
        run.send_signal(signal.SIGINT)
        live.send_signal(signal.SIGINT)
        rest, _ = live.communicate(timeout=60)

    assert line.startswith(("violation: step 5 (training), rank 0: ", "note: "))
    assert "step 5 (training), rank 0: " in line + rest
    assert told["running"]
    assert "the run goes on" in told["incomplete_because"]
    assert live.returncode == 1
    assert "asked to end" in rest
    assert "running" not in loads(summary.read_text())


@pytest.mark.torch
def test_a_process_that_was_killed_ends_the_check(learnt):
    """It left no clean end; nothing is broken, but the trace is not all that was to come."""
    learnt.add("die.py", PROGRAM + "import os\nos.kill(os.getpid(), 9)\n")
    command = ("traincheck-onlinecheck", "-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start(*command) as live:
        learnt.collect("die.py", "t", "--", 10, 10, code=None)
        output, _ = live.communicate(timeout=60)

    assert live.returncode == 3, output
    assert "all processes of the run are gone" in output


@pytest.mark.torch
def test_a_folder_that_vanishes_ends_the_check(learnt):
    """What was read is told."""
    learnt.collect("train.py", "t", "--", 10, 10)
    (shard,) = (learnt.folder / "t").glob("trace_*.json")
    lines = shard.read_text().splitlines(keepends=True)
    shard.write_text("".join(lines[:-1]))  # without a footer, as while it is written
    command = ("traincheck-onlinecheck", "-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start(*command) as live:
        _until((learnt.folder / "live" / SUMMARY_NAME).exists)
        (learnt.folder / "t").rename(learnt.folder / "gone")
        output, _ = live.communicate(timeout=60)

    assert live.returncode == 3, output
    assert "note: t: is gone" in output


@pytest.mark.torch
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_check_with_what_was_found(learnt, number):
    """Nothing half-written is left, and the exit code tells the verdict so far."""
    learnt.collect("train.py", "t", "--", 10, 10)
    (shard,) = (learnt.folder / "t").glob("trace_*.json")
    shard.write_text("".join(shard.read_text().splitlines(keepends=True)[:-1]))
    command = ("traincheck-onlinecheck", "-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start(*command) as live:
        _until((learnt.folder / "live" / SUMMARY_NAME).exists)
        live.send_signal(number)
        output, _ = live.communicate(timeout=60)

    assert live.returncode == 3, output
    assert {each.name for each in (learnt.folder / "live").iterdir()} >= {SUMMARY_NAME}
    assert not [*(learnt.folder / "live").glob(".*")]


@pytest.mark.torch
def test_no_trace_comes(learnt):
    """That is an error, and leaves no folder of results."""
    options = ("-i", "invariants.json", "-o", "live", "--exit-on-idle", "0.3")
    result = learnt.run("traincheck-onlinecheck", "-f", "nowhere", *options, code=2)

    assert "error: nowhere: no trace came" in result.stderr
    assert not (learnt.folder / "live").exists()


@pytest.mark.torch
def test_two_checkers_on_one_folder_of_results(learnt):
    """The second one is refused; the first one goes on."""
    command = ("traincheck-onlinecheck", "-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start(*command) as first:
        _until((learnt.folder / "live").exists)
        _until((learnt.folder / "live" / ".lock").exists)
        second = learnt.run(*command, code=2)
        learnt.collect("train.py", "t", "--", 10, 10)
        output, _ = first.communicate(timeout=60)

    assert "error: live: another checker writes its results there" in second.stderr
    assert first.returncode == 0, output


@pytest.mark.torch
def test_results_that_cannot_be_written(learnt):
    """A file stands where the folder should be: one line, and nothing is read."""
    learnt.add("live", "")
    for command in ("traincheck-check", "traincheck-onlinecheck"):
        result = learnt.run(
            command, "-f", "t_learnt", "-i", "invariants.json", "-o", "live/results", code=2
        )
        assert result.stderr.startswith("error: live/results: cannot be made: ")
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.torch
def test_a_signal_after_the_last_record_loses_no_verdict(learnt):
    """As of a script that collects, and then ends the checker beside it."""
    learnt.collect("train.py", "t", "--", 10, 10)
    options = ("-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start("traincheck-onlinecheck", *options) as live:
        _until((learnt.folder / "live").exists)
        time.sleep(0.1)
        live.send_signal(signal.SIGTERM)
        output, _ = live.communicate(timeout=60)

    summary = loads((learnt.folder / "live" / SUMMARY_NAME).read_text())
    assert live.returncode in (0, 3), output
    assert "running" not in summary


@pytest.mark.torch
def test_a_trace_of_processes_that_nobody_saw_is_told_of(learnt):
    """They may be on another machine; who knows better ends the check."""
    learnt.collect("train.py", "t", "--", 10, 10)
    (shard,) = (learnt.folder / "t").glob("trace_*.json")
    shard.write_text("".join(shard.read_text().splitlines(keepends=True)[:-1]))
    options = ("-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start("traincheck-onlinecheck", *options) as live:
        lines = iter(live.stdout.readline, "")
        assert any("no process of the run was seen alive" in line for line in lines)
        live.send_signal(signal.SIGINT)
        live.communicate(timeout=60)

    assert live.returncode == 3


@pytest.mark.torch
def test_a_trace_that_is_refused_leaves_no_run_that_goes_on(learnt):
    """Who waits for its end learns of it, and why."""
    learnt.collect("train.py", "t", "--", 10, 10)
    (shard,) = (learnt.folder / "t").glob("trace_*.json")
    shard.write_text("".join(shard.read_text().splitlines(keepends=True)[:-1]))
    learnt.tampered.append(shard)
    options = ("-f", "t", "-i", "invariants.json", "-o", "live", "--strict")
    summary = learnt.folder / "live" / SUMMARY_NAME
    with learnt.start("traincheck-onlinecheck", *options) as live:
        _until(summary.exists)
        with shard.open("a") as file:
            file.write("garbage\n")
        output, _ = live.communicate(timeout=60)

    assert live.returncode == 2, output
    told = loads(summary.read_text())
    assert "running" not in told
    assert any("garbage" in why or "JSON" in why for why in told["incomplete_because"]), told


@pytest.mark.torch
def test_a_check_goes_on_when_nobody_reads_what_it_prints(learnt):
    """The results are written to the end."""
    options = ("-f", "t", "-i", "invariants.json", "-o", "live")
    with learnt.start("traincheck-onlinecheck", *options) as live:
        live.stdout.close()
        learnt.collect("train.py", "t", "--", 10, 5)
        live.wait(60)

    assert live.returncode == 141
    summary = loads((learnt.folder / "live" / SUMMARY_NAME).read_text())
    assert summary["failed"]
    assert "running" not in summary
