"""A program that is named as a module runs as `python -m` runs it."""

from __future__ import annotations

import json

import pytest

SHOW = """\
import os, sys
from .part import NAME
print(NAME, __name__, __package__, __spec__.name, __file__, sys.argv, sys.path, os.getcwd())
if "raise" in sys.argv:
    raise ValueError("of the user")
sys.exit(len(sys.argv))
"""


@pytest.fixture
def package(place):
    """A folder with a package, which tells what it sees."""
    place.write("pkg/__init__.py", "")
    place.write("pkg/part.py", "NAME = __name__\n")
    place.write("pkg/train.py", SHOW)
    place.write("pkg/__main__.py", SHOW)
    return place


@pytest.mark.torch
@pytest.mark.parametrize("arguments", [["a b", "--x"], ["raise"]])
@pytest.mark.parametrize("module", ["pkg.train", "pkg"])
def test_the_module_is_what_it_is_by_itself(package, module, arguments):
    """Identity, imports, output, traceback and exit code are those of `python -m`."""
    plain = package.run("python", "-m", module, *arguments)
    recorded = package.collect("-m", module, "--", *arguments)

    said = [line for line in recorded.stderr.splitlines() if not line.startswith(OURS)]
    assert plain.stdout.startswith("pkg.part __main__ pkg "), plain.stderr
    assert recorded.stdout == plain.stdout
    assert said == plain.stderr.splitlines()
    assert recorded.returncode == plain.returncode


OURS = ("traincheck: ", "warning: ")


def test_the_folder_is_named_after_the_module(package):
    """The marked script and the settings in it are those of the module's file."""
    result = package.run("traincheck-collect", "-m", "pkg.train")

    (folder,) = package.path.glob("traincheck_run_pkg.train_*")
    settings = json.loads((folder / "recording.json").read_text())
    assert result.returncode == 1
    assert (settings["module"], settings["script"]) == (
        "pkg.train",
        str(package.path / "pkg" / "train.py"),
    )
    assert (folder / "_traincheck_train.py").is_file()


def test_a_syntax_error_in_the_module_is_told_before_anything_runs(package):
    """Message and line are those that Python would show; the package is not imported."""
    package.write("pkg/__init__.py", "print('imported')\n")
    package.write("pkg/train.py", "x = 1\nfor y in\n")

    result = package.collect("-m", "pkg.train")

    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (f"error: {package.path}/pkg/train.py:2: SyntaxError: invalid syntax\n")


@pytest.mark.torch
def test_a_run_bears_the_name_that_it_is_given(training):
    """`--run-id` stands in the header of each trace."""
    training.collect("-p", "train.py", "--run-id", "mine", "--", "1")

    (trace,) = training.out.glob("trace_*.json")
    assert json.loads(trace.read_text().splitlines()[0])["run_id"] == "mine"
