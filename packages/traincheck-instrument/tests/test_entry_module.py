"""A program that runs as a module under the entry script is what `python -m` makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from traincheck_instrument.settings import RecordingSettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torch

PROGRAM = """\
import sys, os, __main__
from .part import NAME
from pkg import part

print(NAME, part.ARGV0, __file__, __name__, __doc__, __package__, __builtins__, __cached__)
print(__spec__.name, __spec__.origin, __spec__.parent)
print(type(__loader__), __loader__ is __spec__.loader)
print(sys.argv, sys.path, os.getcwd(), vars(__main__) is globals())
print(sorted(name for name in globals() if name != "__traincheck__"))
print([name for name in os.environ if name.startswith("TRAINCHECK")])
if sys.argv[1:] == ["raise"]:
    raise ValueError("of the user")
sys.exit(len(sys.argv))
"""

TRAINING = """\
import multiprocessing
import torch
from .steps import train

def work():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)

if __name__ == "__main__":
    work()
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
"""

STEPS = """\
import torch

def train(model, optimizer):
    for step in range(3):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package, which tells what it sees."""
    (tmp_path / "out").mkdir()
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("import sys\nNAME = __name__\nARGV0 = sys.argv[0]\n")
    (package / "train.py").write_text(PROGRAM)
    (package / "__main__.py").write_text(PROGRAM)
    return tmp_path


def run(
    folder: Path, module: str, *arguments: str, entry: bool
) -> subprocess.CompletedProcess[str]:
    script = folder / "pkg" / ("train.py" if module.endswith("train") else "__main__.py")
    out = folder / "out"
    RecordingSettings(script=script, module=module, output_dir=out, run_id="r").write(
        out / "r.json"
    )
    (out / "entry.py").write_text(
        "from traincheck_instrument.entry import run_program\n"
        f"run_program({str(out / 'r.json')!r})\n"
    )
    started = [str(out / "entry.py")] if entry else ["-m", module]
    return subprocess.run(
        [sys.executable, *started, *arguments],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "arguments", "code"),
    [
        ("pkg.train", ["a b", "--x"], 3),
        ("pkg.train", ["raise"], 1),
        ("pkg", [], 1),
        ("pkg.__main__", ["a"], 2),
    ],
)
def test_the_module_sees_and_says_what_it_would_by_itself(folder, module, arguments, code):
    """Identity, relative imports, output, traceback and exit code are those of `python -m`."""
    plain = run(folder, module, *arguments, entry=False)
    recorded = run(folder, module, *arguments, entry=True)

    assert plain.returncode == code
    assert recorded.returncode == code
    assert recorded.stdout == plain.stdout
    assert recorded.stderr == plain.stderr
    assert plain.stdout.startswith("pkg.part "), plain.stderr


def test_a_module_whose_package_fails_says_what_it_would_by_itself(folder):
    """The packages around the module are imported first, as without us."""
    (folder / "pkg" / "__init__.py").write_text("import missing_of_the_user\n")

    plain = run(folder, "pkg.train", entry=False)
    recorded = run(folder, "pkg.train", entry=True)

    assert recorded.returncode == plain.returncode == 1
    assert recorded.stderr == plain.stderr


@pytest.mark.parametrize("holder", ["package", "beside", "module"])
def test_what_a_module_imports_and_spawns_is_marked(folder, holder):
    """The loop is found wherever it is, in the process itself and in one that it spawns."""
    text = TRAINING
    if holder == "package":
        (folder / "pkg" / "steps.py").write_text(STEPS)
        # The package imports what holds the loop, before the module itself runs.
        (folder / "pkg" / "__init__.py").write_text("from . import steps\n")
    elif holder == "beside":
        (folder / "lib").mkdir()
        (folder / "lib" / "steps.py").write_text(STEPS)
        text = TRAINING.replace("from .steps", "from lib.steps")
    else:
        # Only in what is run itself does a loop without an optimizer count as training.
        by_hand = STEPS.replace("optimizer.step()", "model.weight.data -= model.weight.grad")
        text = TRAINING.replace("from .steps import train\n", by_hand)
    (folder / "pkg" / "train.py").write_text(text)

    result = run(folder, "pkg.train", entry=True)

    assert result.returncode == 0, result.stderr
    traces = list((folder / "out").glob("trace_*.json"))
    assert len(traces) == 2
    for trace in traces:
        records = [json.loads(line) for line in trace.read_text().splitlines()]
        assert [one["step"] for one in records if one["kind"] == "step"] == [0, 1, 2]
        assert records[-1]["kind"] == "footer"
