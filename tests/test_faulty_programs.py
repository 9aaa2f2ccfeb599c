"""Programs that fail, and input that can't be used: what the user sees of it."""

import json

import pytest

from traincheck_relations.testing.traces import TraceBuilder, train

FAILS = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    if step == 5:
        raise ValueError("the data ended")
"""
NO_LOOP = """
import torch
model = torch.nn.Linear(4, 2)
torch.randn(3, 4) @ model.weight.T
"""


@pytest.mark.torch
def test_a_script_that_raises_keeps_its_traceback_and_exit_code(bench):
    """The traceback is the plain run's, the trace is read up to there, and is told incomplete."""
    bench.add("good.py", FAILS.replace("if step == 5", "if False"))
    bench.add("fails.py", FAILS)
    bench.collect("good.py", "t_good")
    bench.infer("t_good")

    plain = bench.python("fails.py", code=1).stderr
    collected = bench.collect("fails.py", "t_fails", "-i", "invariants.json", code=1).stderr
    summary = bench.check("t_fails", "r_fails", code=3)

    assert plain.splitlines()[-1] == "ValueError: the data ended"
    assert plain in collected
    assert not summary["complete"]
    assert summary["violations"] == []
    assert summary["passed"] > 0
    steps = [one["step"] for one in bench.records("t_fails") if one["kind"] == "step"]
    assert steps == [0, 1, 2, 3, 4, 5]


@pytest.mark.torch
def test_a_killed_run_leaves_a_readable_trace(bench):
    """SIGKILL in the middle: what was written before is checked, and told incomplete."""
    bench.add("good.py", FAILS.replace("if step == 5", "if False"))
    killed = FAILS.replace(
        'raise ValueError("the data ended")',
        "import os, time; time.sleep(1.0); os.kill(os.getpid(), 9)",
    )
    bench.add("killed.py", killed)
    bench.collect("good.py", "t_good")
    bench.infer("t_good")

    bench.collect("killed.py", "t_killed", "-i", "invariants.json", code=137)
    summary = bench.check("t_killed", "r_killed", code=3)

    assert summary["passed"] > 0
    assert any("footer" in reason for reason in summary["incomplete_because"])


@pytest.mark.torch
def test_a_run_without_a_training_step_warns_and_says_what_to_do(bench):
    """No loop was found: the user learns it, and how to mark one by hand."""
    bench.add("no_loop.py", NO_LOOP)

    collected = bench.collect("no_loop.py", "t_none")
    inferred = bench.run("traincheck-infer", "-f", "t_none", "-o", "i.json", code=2)

    assert "warning: no training step was seen" in collected.stderr
    assert "start_step" in collected.stderr
    assert inferred.stderr.startswith("error: ")
    assert "start_step" in inferred.stderr
    assert not (bench.folder / "i.json").exists()


def one_line(result):
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert result.stdout == ""
    return lines[0]


def test_a_missing_script_is_named(bench):
    """No such script: the option and the path."""
    line = one_line(bench.run("traincheck-collect", "-p", "absent.py", code=2))

    assert "absent.py" in line


@pytest.mark.torch
def test_a_name_that_the_script_does_not_bind_is_told_with_those_it_does(bench):
    """`--models-to-track net` where the script says `model`."""
    bench.add("train.py", FAILS)

    line = one_line(
        bench.run("traincheck-collect", "-p", "train.py", "--models-to-track", "net", code=2)
    )

    assert "net" in line
    assert "model" in line
    assert not list(bench.folder.glob("traincheck_run_*"))


@pytest.mark.parametrize("command", ["traincheck-infer", "traincheck-check"])
def test_an_empty_folder_has_no_trace(bench, command):
    """Both readers say what they looked for, and where it comes from."""
    (bench.folder / "empty").mkdir()
    trace = TraceBuilder(bench.folder / "t")
    train(trace.rank(), 6)
    trace.write()
    bench.infer("t")
    extra = ("-i", "invariants.json") if command == "traincheck-check" else ()

    line = one_line(bench.run(command, "-f", "empty", *extra, code=2))

    assert "empty" in line
    assert "trace_" in line


def test_a_trace_of_another_major_version_is_refused(bench):
    """The version that was read, the one that is known, and the command that migrates."""
    trace = TraceBuilder(bench.folder / "t")
    train(trace.rank(), 6)
    path = trace.write()
    bench.infer("t")
    text = path.read_text()
    path.write_text(text.replace('"version": "1.0"', '"version": "2.0"', 1))
    bench.tampered.append(path)

    line = one_line(
        bench.run("traincheck-check", "-f", "t", "-i", "invariants.json", "-o", "r", code=2)
    )

    assert "2.0" in line
    assert "1.x" in line
    assert "migrate" in line
    assert not (bench.folder / "r").exists()


def test_a_broken_line_of_an_invariant_file_is_named_by_number(bench):
    """Line 3 is no JSON: the file and the line."""
    trace = TraceBuilder(bench.folder / "t")
    train(trace.rank(), 6)
    trace.write()
    bench.infer("t")
    path = bench.folder / "invariants.json"
    lines = path.read_text().splitlines()
    lines[2] = lines[2][:-5]
    path.write_text("\n".join(lines))
    bench.tampered.append(path)

    line = one_line(
        bench.run("traincheck-check", "-f", "t", "-i", "invariants.json", "-o", "r", code=2)
    )

    assert "invariants.json:3" in line


def test_every_command_answers_help_at_once_and_lists_versions(bench):
    """`--help` imports neither numpy nor torch; `--version` names the installed packages."""
    for command in ("traincheck", "traincheck-collect", "traincheck-infer", "traincheck-check"):
        assert "Usage:" in bench.run(command, "--help").stdout
        assert "traincheck-trace-schema" in bench.run(command, "--version").stdout
    probe = (
        "import sys, traincheck_launcher.commands.collect, traincheck_infer.cli;"
        "import traincheck_check.commands.check;"
        "print(json.dumps(sorted({'numpy', 'torch', 'cattrs'} & set(sys.modules))))"
    )
    loaded = bench.python("-c", f"import json; {probe}").stdout

    assert json.loads(loaded) == []
