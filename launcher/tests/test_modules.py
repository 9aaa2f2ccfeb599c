"""Modules are found as the program would find them, and none is imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from traincheck_launcher.preparing.modules import ModuleFinder, modules_of
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.plan import FunctionPlan, Plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def finder(tmp_path: Path) -> ModuleFinder:
    """A finder beside whose script lie modules that end the process that imports them."""
    for name in ("own.py", "parts/__init__.py", "parts/first.py", "bare/second.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise SystemExit('imported')\n")
    return ModuleFinder(tmp_path)


@pytest.mark.parametrize(
    "name", ["own", "parts", "parts.first", "bare", "bare.second", "click.core", "torch.nn"]
)
def test_a_module_is_found(finder, name):
    """Beside the script, in packages with and without a file of their own, and installed."""
    finder.check([name])

    assert name.partition(".")[0] not in {"own", "parts", "bare"} & sys.modules.keys()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("onw", "'onw'; did you mean 'own'?"),
        ("parts.frist", "'parts.frist'; did you mean 'parts.first'?"),
        ("own.py", "'own.py' that the script could import"),
        ("nowhere.parts", "'nowhere.parts' that the script could import"),
        ("", "'' that the script could import"),
        ("own.", "'own.' that the script could import"),
    ],
)
def test_a_module_that_is_not_there_is_refused(finder, name, told):
    """What is close is offered; a file's name is no module's."""
    with pytest.raises(ConfigError) as caught:
        finder.check(["own", name])

    assert str(caught.value).startswith(f"--modules-to-instr: there is no module {told}")


def test_what_is_never_recorded_is_refused(finder):
    """Python itself is not: it would be the recorder that is recorded."""
    with pytest.raises(ConfigError, match="--modules-to-instr: json is never recorded: "):
        finder.check(["json"])


def test_only_installed_modules_run_nothing_of_the_user(finder):
    """What lies beside the script, or anywhere else, is the user's."""
    installed = ["json", "sys", "click"]
    finder.check(["__main__"])  # the script; it is imported by nobody

    assert all(map(finder.is_installed, installed))
    assert not any(map(finder.is_installed, ["own", "parts.first", "bare", "nowhere"]))


def test_a_plan_tells_whose_functions_are_recorded(finder):
    """torch, and the packages of its functions that can be found; what is given goes before."""
    names = ("torch.nn.Linear.forward", "own.loss", "lost.loss", "__main__.loss")
    functions = tuple(FunctionPlan(name=name) for name in names)
    plan = Plan(id="p", functions=functions, variables=())

    assert modules_of((), plan, finder) == ("torch", "own")
    assert modules_of((), None, finder) == ("torch",)
    assert modules_of(("parts", "parts"), plan, finder) == ("parts",)
