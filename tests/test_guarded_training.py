"""Training that is checked while it goes on, and stopped: real programs with planted bugs."""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.progress_file import PROGRESS_NAME, read_progress
from traincheck_trace_schema.results_file import SUMMARY_NAME, read_summary

HERE = Path(__file__).parent
pytestmark = pytest.mark.torch

# The optimizer leaves its last group of parameters out from one step on.
STEPS_WRONGLY = """\
        left_out = optimizer.param_groups.pop() if step >= args.bug_at else None
        optimizer.step()
        if left_out is not None:
            optimizer.param_groups.append(left_out)
        print("made", step, time.time(), flush=True)
        time.sleep(args.pause)
        if args.save:
            torch.save(model.state_dict(), f"checkpoint_{step}.pt")
"""
# The ranks do not share their gradients any more from one step on.
SHARES_NOTHING = """\
            if len(step_times) == args.bug_at:
                ddp_model.require_backward_grad_sync = False
            optimizer.zero_grad()
"""
OPTIONS = """\
    parser.add_argument("--timings", default=None)
    parser.add_argument("--bug-at", type=int, default=10**9)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--save", action="store_true")
"""
ENDS = """\
if __name__ == "__main__":
    import atexit
    atexit.register(print, "at exit")
    try:
        main()
    finally:
        print("finally")
"""
SMALL = """
import sys, time
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).sum()
    loss.backward()
    if step < int(sys.argv[2]):
        optimizer.step()
    print("made", step, flush=True)
    time.sleep(float(sys.argv[3]))
print("loss", loss.item())
"""
TRAINER = """
import sys, time
import torch

def train(model, optimizer):
    for step in range(int(sys.argv[1])):
        if step < int(sys.argv[2]):
            optimizer.zero_grad()
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()
        print("made", step, flush=True)
        time.sleep(float(sys.argv[3]))
"""
TRAINS = """
import torch
from trainer import train

model = torch.nn.Linear(4, 2)
train(model, torch.optim.SGD(model.parameters(), lr=0.1))
"""
SHORT = ("--batch-size", "4", "--context", "32", "--eval-every", "1000")


def _replaced(source, *pairs):
    for old, new in pairs:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def _char_transformer():
    source = (HERE / "workloads" / "char_transformer.py").read_text()
    return _replaced(
        source,
        ("        optimizer.step()\n", STEPS_WRONGLY),
        ('    parser.add_argument("--timings", default=None)\n', OPTIONS),
        ('if __name__ == "__main__":\n    main()\n', ENDS),
    )


def _ddp_digits():
    source = (HERE / "workloads" / "ddp_digits.py").read_text()
    told = '            print(f"made {rank} {len(step_times)}\\n", end="", flush=True)\n'
    step = "            optimizer.step()\n"
    return _replaced(
        source,
        ("            optimizer.zero_grad()\n", SHARES_NOTHING),
        ('    parser.add_argument("--timings", default=None)\n', OPTIONS),
        (step, step + told),
    )


def _learnt(bench, name, source, *arguments, ranks=1):
    """Learn from a run of a program that is right."""
    bench.add(name, source)
    bench.collect(name, "learnt", "--", *arguments, ranks=ranks)
    bench.infer("learnt")
    return bench.folder


@pytest.fixture(scope="module")
def of_transformer(module_bench):
    return _learnt(module_bench, "train.py", _char_transformer(), "--steps", 16, *SHORT)


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory, module_bench):
    bench = type(module_bench)(tmp_path_factory.mktemp("ranks"), module_bench.environment)
    return _learnt(bench, "train.py", _ddp_digits(), "--steps", 30, ranks=2)


@pytest.fixture(scope="module")
def of_small(tmp_path_factory, module_bench):
    bench = type(module_bench)(tmp_path_factory.mktemp("small"), module_bench.environment)
    return _learnt(bench, "train.py", SMALL, 20, 20, 0)


def _guarded(*options, script="train.py", ranks=()):
    return (
        *("traincheck-collect", "-p", script, "--models-to-track", "model", "--output-dir", "run"),
        *("--invariants", "invariants.json", "--check", *options, *ranks, "--"),
    )


def _made(output):
    """Return the steps that a program says it has made, by their last word before the time."""
    return [line.split()[1:] for line in output.splitlines() if line.startswith("made ")]


@pytest.mark.parametrize("lockstep", [True, False], ids=["lockstep", "free"])
def test_a_run_that_goes_wrong_is_stopped(bench, of_transformer, lockstep):
    """In lockstep within two steps, and no checkpoint is written; otherwise within seconds."""
    shutil.copytree(of_transformer, bench.folder, dirs_exist_ok=True)
    options = ("--on-violation", "stop", *(["--lockstep"] if lockstep else []))
    program = ("--steps", 600, "--bug-at", 8, "--pause", 0 if lockstep else 0.05, "--save", *SHORT)

    result = bench.run(*_guarded(*options), *program, code=1)

    made = [(int(step), float(at)) for step, at in _made(result.stdout)]
    after = f"{made[-1][0] - 8} steps and {made[-1][1] - made[8][1]:.2f} s after the bug"
    sys.stdout.write(f"stopped {after}\n")
    saved = [int(path.stem.rpartition("_")[2]) for path in bench.folder.glob("checkpoint_*.pt")]
    if lockstep:
        assert made[-1][0] <= 10
        assert max(saved) < 8
    else:
        assert made[-1][0] < 300  # of 600: each takes more than 0.05 s
    assert result.stdout.splitlines()[-2:] == ["finally", "at exit"]
    assert "violation: step 8 (training), rank 0: " in result.stderr
    assert "traincheck: the check stopped the program " in result.stderr
    summary = read_summary(bench.folder / "run" / "check" / SUMMARY_NAME)
    assert summary.complete  # there is a footer
    assert summary.violations[0].first.step == 8


@pytest.mark.ranks
@pytest.mark.parametrize("lockstep", [True, False], ids=["lockstep", "free"])
def test_all_ranks_stop_before_the_same_step(bench, of_ranks, lockstep):
    """None waits for another for ever, and each leaves a whole trace."""
    shutil.copytree(of_ranks, bench.folder, dirs_exist_ok=True)
    bench.add("run.sh", 'torchrun --standalone --nproc-per-node 2 train.py "$@"\n')
    options = ("--on-violation", "stop", *(["--lockstep"] if lockstep else []))

    result = bench.run(
        *_guarded(*options, ranks=("--shscript", "run.sh")), "--steps", 4000, "--bug-at", 12, code=1
    )

    last = {rank: int(step) for rank, step in _made(result.stdout)}
    assert last["0"] == last["1"] < 3000
    if lockstep:
        assert last["0"] <= 14
    summary = read_summary(bench.folder / "run" / "check" / SUMMARY_NAME)
    assert summary.complete, summary.incomplete_because
    assert summary.violations[0].first.step == 12
    assert f"the check stopped the program before step {last['0'] + 1}: " in result.stderr


@pytest.mark.ranks
@pytest.mark.matrix
def test_what_torchrun_starts_again_stops_at_once(bench, of_ranks):
    """A stop is no failure that another attempt could mend."""
    shutil.copytree(of_ranks, bench.folder, dirs_exist_ok=True)
    bench.add("run.sh", 'torchrun --standalone --max-restarts 1 --nproc-per-node 2 train.py "$@"\n')

    result = bench.run(
        *_guarded("--on-violation", "stop", ranks=("--shscript", "run.sh")),
        *("--steps", 4000, "--bug-at", 12),
        code=1,
    )

    headers = [one for one in bench.records("run") if one["kind"] == "header"]
    assert {header["restart"] for header in headers} == {0, 1}
    steps = [int(step) for rank, step in _made(result.stdout) if rank == "0"]
    assert steps.count(0) == 1  # the second attempt makes none
    assert "the check stopped the program before step " in result.stderr


def test_a_warning_stops_nothing(bench, of_small):
    """The violation is told while the program runs, which then ends as it would have."""
    shutil.copytree(of_small, bench.folder, dirs_exist_ok=True)

    result = bench.run(*_guarded(), 60, 5, 0.02, code=1)

    assert len(_made(result.stdout)) == 60
    assert result.stderr.startswith("violation: step 5 (training), rank 0: ")
    assert "stopped" not in result.stderr
    assert not (bench.folder / "run" / "check" / "stopped.json").exists()


def test_what_is_known_to_be_broken_stops_nothing(bench, of_small):
    """With a baseline, only what is new does."""
    shutil.copytree(of_small, bench.folder, dirs_exist_ok=True)
    program = (20, 5, 0)
    bench.run(*_guarded(), *program, code=1)
    known = ("traincheck-check", "-f", "run", "-i", "invariants.json", "-o", "checked")
    bench.run(*known, "--write-baseline", "known.json", "--exit-zero")
    shutil.rmtree(bench.folder / "run")

    result = bench.run(*_guarded("--on-violation", "stop", "--baseline", "known.json"), *program)

    assert len(_made(result.stdout)) == 20
    told = [line for line in result.stderr.splitlines() if line.startswith("violation: ")]
    assert len(told) == 1
    assert " (known): " in told[0]


def test_a_step_that_never_ends_is_stopped_too(bench, of_small):
    """Where the optimizer steps no more, the step goes on: it is stopped before a micro-batch."""
    shutil.copytree(of_small, bench.folder, dirs_exist_ok=True)

    result = bench.run(*_guarded("--on-violation", "stop", "--lockstep"), 600, 5, 0.02, code=1)

    assert len(_made(result.stdout)) < 10
    assert "stopped the program in step 5, before a micro-batch: step 5, rank 0: " in result.stderr


def test_a_check_that_dies_harms_nothing(bench, of_small):
    """The training goes on to its end, that is told once, and the exit code is the program's."""
    shutil.copytree(of_small, bench.folder, dirs_exist_ok=True)
    plain = bench.python("train.py", 80, 80, 0)
    progress = bench.folder / "run" / "check" / PROGRESS_NAME
    command = _guarded("--on-violation", "stop", "--lockstep")
    with bench.start(*command, 80, 80, 0.05) as run:
        until = time.monotonic() + 60
        while not progress.exists() or all(
            one.step <= 3 for one in read_progress(progress).processes
        ):
            assert time.monotonic() < until
            time.sleep(0.02)
        os.kill(read_progress(progress).pid, signal.SIGKILL)
        output, _ = run.communicate(timeout=120)

    assert run.returncode == 0, output
    assert len(_made(output)) == 80
    assert plain.stdout.splitlines()[-1] in output
    told = "traincheck: the check has ended by signal 9; the program goes on unchecked"
    assert output.count(told) == 1


def test_a_good_run_is_not_changed_by_being_checked(bench, of_transformer):
    """The loss is the same to the last bit, and nothing is told of it."""
    shutil.copytree(of_transformer, bench.folder, dirs_exist_ok=True)
    program = ("--steps", 16, *SHORT)
    source = _replaced(
        _char_transformer(),
        ('    print(f"final loss {loss.item():.6f}")\n', '    print("loss", loss.item().hex())\n'),
    )
    bench.add("train.py", source)

    plain = bench.python("train.py", *program)
    checked = bench.run(*_guarded("--on-violation", "stop", "--lockstep"), *program)

    losses = [
        next(line for line in result.stdout.splitlines() if line.startswith("loss "))
        for result in (plain, checked)
    ]
    assert losses[0] == losses[1]
    assert read_summary(bench.folder / "run" / "check" / SUMMARY_NAME).failed == 0


def test_a_loop_that_is_not_in_the_script_is_stopped(bench):
    """Where no mark begins the steps, the calls of the model do."""
    bench.add("trainer.py", TRAINER)
    _learnt(bench, "train.py", TRAINS, 20, 20, 0)

    result = bench.run(*_guarded("--on-violation", "stop", "--lockstep"), 600, 5, 0.02, code=1)

    assert len(_made(result.stdout)) <= 8
    assert "traincheck: the check stopped the program before step " in result.stderr


def test_the_whole_job_in_one_command(bench):
    """A reference is run and learnt from, then the program is run and checked."""
    bench.add("good.py", SMALL)
    bench.add("train.py", SMALL)
    command = ("traincheck", "run", "train.py", "--models-to-track", "model", "--output-dir", "job")

    result = bench.run(
        *command,
        *("--reference", "good.py", "--reference-args", "20 20 0", "--on-violation", "stop"),
        *("--", 600, 5, 0.05),
        code=1,
    )

    assert {path.name for path in (bench.folder / "job").iterdir()} == {
        "reference",
        "invariants.json",
        "run",
    }
    assert 5 < len(_made(result.stdout)) - 20 < 300
    assert "[1/3] recording the reference, good.py" in result.stderr
    assert "traincheck: the check stopped the program in step 5, before a micro" in result.stderr
    summary = loads((bench.folder / "job" / "run" / "check" / SUMMARY_NAME).read_text())
    assert summary["failed"]

    again = bench.run(
        *("traincheck", "run", "train.py", "--models-to-track", "model"),
        *("--invariants", "job/invariants.json", "--", 20, 20, 0),
    )
    assert _made(again.stdout) == [[str(step)] for step in range(20)]
    assert read_summary(bench.folder / "traincheck_run_latest" / "run" / "check" / SUMMARY_NAME)
