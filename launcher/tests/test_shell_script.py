"""Programs that a shell script starts: found in whatever way it does so, and run unchanged."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

import traincheck_launcher

HOOK = Path(traincheck_launcher.__file__).parent / "site_hook" / "sitecustomize.py"

SHOW = """\
import os, sys
is_recorded = "traincheck_instrument.entry" in sys.modules
print(f"recorded: {is_recorded}", sys.argv, __file__, sys.path[0], sys.flags)
print(os.getcwd(), os.environ.get("X"))
"""

FORMS = {
    "plain": 'python "sub dir/train.py" a "b c"',
    "options": 'python -u -W ignore -Xutf8 -X dev -Bq "sub dir/train.py" -c -m',
    "cd": 'cd "sub dir"; python ./train.py',
    "exec": 'exec python "sub dir/train.py"',
    "env": 'env X=1 python "sub dir/train.py"',
    "export and subshell": 'export X=2; (cd "sub dir" && python train.py)',
    "loop": 'for i in 1 2; do python "sub dir/train.py" $i; done',
    "here-document": 'python "sub dir/train.py" <<END\ntext\nEND',
    "module": 'cd "sub dir"; python -m train a "b c"',
    "module and options": 'cd "sub dir"; python -W ignore -Bqum train -m -c',
    "a path of its own": 'PYTHONPATH="$PWD/x y" python "sub dir/train.py"',
    "an exported path": 'export PYTHONPATH=lib; exec env X=3 python3 "sub dir/train.py"',
    "no path": 'unset PYTHONPATH; nohup python "sub dir/train.py"',
    "symbolic link": 'ln -sf "sub dir/train.py" link.py; python link.py',
}


@pytest.mark.torch
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_the_script_is_found_and_runs_as_by_itself(place, text):
    """Each form records the program, which sees what it would see without us."""
    place.write("sub dir/train.py", SHOW)
    place.write("run.sh", text)

    plain = place.run("bash", "run.sh", PYTHONUNBUFFERED="1")
    recorded = place.collect("-p", "sub dir/train.py", "-s", "run.sh", PYTHONUNBUFFERED="1")

    assert plain.stdout.startswith("recorded: False")
    assert recorded.stdout == plain.stdout.replace("recorded: False", "recorded: True")
    assert recorded.returncode == 0


def test_a_command_that_is_written_in_python_is_found_with_a_path_of_its_own(place):
    """As torchrun is: the kernel starts its interpreter, wherever PATH leads."""
    place.write("train.py", SHOW)
    tool = place.write("bin/tool", f"#!{sys.executable}\nimport sys, subprocess\n")
    tool.write_text(
        tool.read_text() + "subprocess.run([sys.executable, 'train.py', *sys.argv[1:]])"
    )
    tool.chmod(0o755)
    place.write("run.sh", "PYTHONPATH=lib tool a\nPYTHONPATH=lib:$PYTHONPATH tool b")
    path = f"{tool.parent}:{os.environ['PATH']}"

    done = place.collect("-p", "train.py", "-s", "run.sh", PATH=path)

    assert done.stdout.count("recorded: True ['train.py', ") == 2


LEFT_BEHIND = """\
import time, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    print(step)
    time.sleep(0.5)
print("finished")
"""


@pytest.mark.torch
def test_a_program_that_runs_on_in_the_background_is_waited_for(place):
    """The script has ended; what else it left running is not waited for."""
    place.write("train.py", LEFT_BEHIND)
    place.write("run.sh", "sleep 60 &\npython train.py &\necho started")

    done = place.collect("-p", "train.py", "-s", "run.sh", "--models-to-track", "model")

    assert done.stdout.splitlines() == ["started", *map(str, range(8)), "finished"]
    assert done.returncode == 0
    assert "note: a recorded program still runs that was left behind" in done.stderr
    assert "training steps seen: 8" in done.stderr


def test_other_programs_run_unchanged(place):
    """Code on the command line, modules and other scripts are no business of ours."""
    place.write("train.py", SHOW)
    place.write("other.py", "import sys; print(sys.argv, sys.path)")
    place.write("run.sh", "python other.py train.py; python -c 'print(1)' train.py; python -m this")

    plain = place.run("bash", "run.sh")
    recorded = place.collect("-p", "train.py", "-s", "run.sh")

    assert recorded.stdout == plain.stdout
    assert recorded.stderr.endswith(
        "error: nothing was recorded: run.sh started no Python process that runs train.py "
        "(not followed are python -I, -S and -E, a program on its stdin, and a PYTHONPATH that "
        "another file sets anew)\n"
    )
    assert recorded.returncode == 2


def test_a_script_that_records_nothing_is_not_said_to_be_missed(place):
    """It was started, and used nothing of torch; its exit code stays."""
    place.write("train.py", SHOW)
    place.write("run.sh", "python train.py; exit $1")

    good = place.collect("-p", "train.py", "-s", "run.sh", "--", "0")
    bad = place.collect("-p", "train.py", "-s", "run.sh", "--overwrite", "--", "3")

    assert (good.returncode, bad.returncode) == (0, 3)
    for result in (good, bad):
        assert "the program made no call that is recorded" in result.stderr
        assert "started no Python process" not in result.stderr


def test_a_shell_script_that_fails_first_keeps_its_exit_code(place):
    """Its own messages say why; ours says that nothing was started."""
    place.write("train.py", SHOW)
    place.write("run.sh", "cd missing || exit 4; python train.py")

    result = place.collect("-p", "train.py", "-s", "run.sh")

    assert result.returncode == 4
    assert "no trace was written: run.sh started no Python process" in result.stderr


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/usr/bin/env -S bash -e", ""])
@pytest.mark.parametrize("may_run", [True, False])
def test_what_may_be_executed_is_run_by_the_shell_that_it_names(place, first, may_run):
    """Otherwise bash runs it, as `bash run.sh` would."""
    place.write("train.py", SHOW)
    script = place.write(
        "run.sh", f'{first}\necho "$0" "${{BASH_VERSION-none}}" $-\npython train.py\n'
    )
    script.chmod(0o755 if may_run else 0o644)

    plain = place.run(
        *(["./run.sh"] if may_run and first else ["bash", "run.sh"]), PYTHONUNBUFFERED="1"
    )
    recorded = place.collect("-p", "train.py", "-s", "run.sh", PYTHONUNBUFFERED="1")

    assert recorded.stdout == plain.stdout.replace("recorded: False", "recorded: True")
    assert recorded.returncode == 0
    assert ("none" in plain.stdout.split()[1]) == (may_run and first == "#!/bin/sh")


def test_a_shell_that_is_not_there_is_told(place):
    """The first line of the script is to blame, and nothing is run."""
    place.write("train.py", SHOW)
    script = place.write("run.sh", "#!/usr/bin/env nosuchshell\npython train.py\n")
    script.chmod(0o755)

    result = place.collect("-p", "train.py", "-s", "run.sh")

    assert result.returncode == 2
    assert result.stderr == (
        "error: --shscript: run.sh:1: 'nosuchshell', which is to run it, is not there; install it, "
        "or mend the line\n"
    )
    assert not place.out.exists()


def test_a_script_of_a_package_is_read_with_its_package(place):
    """A name to track may be assigned in a module that only the package's own name leads to."""
    place.write("pkg/__init__.py", "")
    place.write("pkg/train.py", "from pkg.models import build\nprint(build())\n")
    place.write("pkg/models.py", "def build():\n    net = 7\n    return net\n")
    place.write("run.sh", "python -m pkg.train")

    result = place.collect("-p", "pkg/train.py", "-s", "run.sh", "--models-to-track", "net")

    assert result.returncode == 0, result.stderr
    assert result.stdout == "7\n"


def test_the_users_sitecustomize_is_run_once(place):
    """A sitecustomize on the user's own PYTHONPATH works as before, for every program."""
    place.write("own/sitecustomize.py", "import builtins; builtins.marks = [__name__, __file__]")
    place.write("other.py", "import sys, sitecustomize; print(marks, sitecustomize.__file__)")
    place.write("run.sh", "python other.py")

    plain = place.run("bash", "run.sh", PYTHONPATH="own")
    recorded = place.collect("-p", "other.py", "-s", "run.sh", PYTHONPATH="own")

    assert "own" in plain.stdout
    assert recorded.stdout == plain.stdout


@pytest.mark.torch
@pytest.mark.ranks
def test_torchrun_records_each_rank(training):
    """Every rank writes a trace of its own, and the steps of each are told."""
    training.write("run.sh", "torchrun --standalone --nproc-per-node 2 train.py $1\n")

    result = training.collect("-p", "train.py", "-s", "run.sh", "--", "2", OMP_NUM_THREADS="1")

    assert result.returncode == 0, result.stderr
    assert "training steps seen: 2 on each of 2 ranks" in result.stderr
    assert len(list(training.out.glob("trace_r?_p*.json"))) == 2


@pytest.mark.parametrize(
    ("command", "options", "program"),
    [
        ("python t.py a", "", "t.py"),
        ("python -u -W ignore t.py", "-u -W ignore", "t.py"),
        ("python -uWignore t.py", "-uWignore", "t.py"),
        ("python -uW ignore t.py", "-uW ignore", "t.py"),
        ("python -X dev -Xutf8 t.py", "-X dev -Xutf8", "t.py"),
        ("python --check-hash-based-pycs always t.py", "--check-hash-based-pycs always", "t.py"),
        ("python -- t.py", "--", "t.py"),
        ("python -m t a", "", "-m t"),
        ("python -mt a", "", "-m t"),
        ("python -X dev -um t a", "-X dev -u", "-m t"),
        ("python -umt", "-u", "-m t"),
        ("python -um", None, None),
        ("python -c t.py", None, None),
        ("python - t.py", None, None),
        ("python", None, None),
        ("python -u", None, None),
        ("python --", None, None),
    ],
)
def test_what_a_command_line_starts_is_found(hook, command, options, program):
    """Options of the interpreter and their values are passed over, as Python itself does."""
    started = hook.started_by(command.split())

    if program is None:
        assert started is None
    else:
        found, name, is_module, arguments = started
        assert found == options.split()
        assert program == (f"-m {name}" if is_module else name)
        assert arguments == command.split()[-1:] * command.endswith(" a")


def test_the_file_of_a_module_is_found_without_importing_anything(hook, tmp_path, monkeypatch):
    """In packages with and without a file of their own; of a package, it is its `__main__.py`."""
    for name in ("a/__init__.py", "a/b/c.py", "a/__main__.py", "single.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)

    found = {
        name: hook.file_of(name) for name in ("single", "a", "a.b.c", "a.b", "a.x", "single.x")
    }

    assert found == {
        "single": str(tmp_path / "single.py"),
        "a": str(tmp_path / "a" / "__main__.py"),
        "a.b.c": str(tmp_path / "a" / "b" / "c.py"),
        "a.b": None,
        "a.x": None,
        "single.x": None,
    }
    assert hook.file_of("torch.distributed.run").endswith("torch/distributed/run.py")
    assert not {"a", "single"} & set(sys.modules)


@pytest.fixture
def hook():
    """Import the hook as a module of another name, under which it does nothing by itself."""
    spec = importlib.util.spec_from_file_location("hook", HOOK)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook
