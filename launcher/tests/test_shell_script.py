"""Programs that a shell script starts: found in whatever way it does so, and run unchanged."""

from __future__ import annotations

import importlib.util
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


def test_other_programs_run_unchanged(place):
    """Code on the command line, modules and other scripts are no business of ours."""
    place.write("train.py", SHOW)
    place.write("other.py", "import sys; print(sys.argv, sys.path)")
    place.write("run.sh", "python other.py train.py; python -c 'print(1)' train.py; python -m this")

    plain = place.run("bash", "run.sh")
    recorded = place.collect("-p", "train.py", "-s", "run.sh")

    assert recorded.stdout == plain.stdout
    assert "run.sh started no Python process that runs train.py" in recorded.stderr


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
    ("command", "script"),
    [
        ("python t.py a", "t.py"),
        ("python -u -W ignore t.py", "t.py"),
        ("python -uWignore t.py", "t.py"),
        ("python -uW ignore t.py", "t.py"),
        ("python -X dev -Xutf8 t.py", "t.py"),
        ("python --check-hash-based-pycs always t.py", "t.py"),
        ("python -- t.py", "t.py"),
        ("python -m t.py", None),
        ("python -um t.py", None),
        ("python -c t.py", None),
        ("python - t.py", None),
        ("python", None),
        ("python -u", None),
        ("python --", None),
    ],
)
def test_the_script_in_a_command_line_is_found(command, script):
    """Options of the interpreter and their values are passed over, as Python itself does."""
    spec = importlib.util.spec_from_file_location("hook", HOOK)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    argv = command.split()

    at = hook.script_index(argv)

    assert (None if at is None else argv[at]) == script
    assert hook.__name__ not in sys.modules
