"""Loops in modules of the program's own are found without running it, and marked when imported."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
import zipfile
from functools import partial
from typing import TYPE_CHECKING

import pytest

import traincheck_instrument
from traincheck_instrument.current import Current
from traincheck_instrument.program.own_modules import OwnModules
from traincheck_instrument.source import OwnFiles, read_program, rewrite

if TYPE_CHECKING:
    from pathlib import Path

LOOP = """
def fit(optimizer, loader):
    for batch in loader:
        batch()
        optimizer.step()
"""
IDLE = "def double(x):\n    return 2 * x\n"


def write(folder: Path, **files: str) -> None:
    """Write files; `a__b` stands for `a/b.py`, `a__` for `a/__init__.py`."""
    for name, text in files.items():
        parts = [part or "__init__" for part in name.split("__")]
        path = folder.joinpath(*parts).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(folder: Path, *models: str, packages: tuple[str, ...] = ()):
    script = folder / "train.py"
    return read_program(script.read_bytes(), script, models, packages)


def found(program) -> set[tuple[str, int, str]]:
    return {
        (loop.file.rpartition("/")[2], loop.line, loop.kind)
        for file in program.files
        for loop in file.findings.loops
    }


def test_loops_are_found_in_what_the_script_imports(tmp_path):
    """By name, from a package, relatively, in a function, through another module."""
    write(
        tmp_path,
        train="import one\nfrom pack import two\ndef f():\n    from pack.deep.three import fit\n",
        one="import four\n" + LOOP,
        four=LOOP,
        pack__two="from . import five\nfrom .deep import six as seven\n" + LOOP,
        pack__five=LOOP,
        pack__deep__three="from ..eight import fit\n" + LOOP,
        pack__deep__six=LOOP,
        pack__eight=LOOP,
        never=LOOP,
    )

    program = read(tmp_path)

    names = {file for file, _, _ in found(program)}
    assert names == {f"{n}.py" for n in ("one", "two", "three", "four", "five", "six", "eight")}
    assert program.steps_from == "source"


def test_what_is_installed_is_not_read(tmp_path):
    """Neither an environment below the script's folder, nor the standard library."""
    installed = tmp_path / "env" / "site-packages"
    write(installed, fast=LOOP)
    (tmp_path / "fast.py").symlink_to(installed / "fast.py")
    write(tmp_path, train="import asyncio\nimport fast\n")

    assert found(read(tmp_path)) == set()


def test_a_package_that_the_user_names_is_read_wherever_it_lies(tmp_path, monkeypatch):
    """`--modules-to-instr mine`: it stands beside the script's folder, and not below it."""
    write(tmp_path / "src", mine__engine=LOOP, mine__="", other=LOOP)
    write(tmp_path / "scripts", train="import mine.engine, other\n")
    monkeypatch.syspath_prepend(tmp_path / "src")
    folder = tmp_path / "scripts"

    assert found(read(folder)) == set()
    assert found(read(folder, packages=("mine",))) == {("engine.py", 3, "training")}


def test_a_named_package_is_followed_through_relative_imports(tmp_path, monkeypatch):
    """They hold no name of the package, from its own file, from a module, and upwards."""
    write(
        tmp_path / "src",
        mine__="from .one import fit\n" + LOOP,
        mine__one="from . import two\n" + LOOP,
        mine__two="from .deep import three\n" + LOOP,
        mine__deep__three="from ..four import fit\n" + LOOP,
        mine__four=LOOP,
    )
    write(tmp_path / "scripts", train="import mine\n")
    monkeypatch.syspath_prepend(tmp_path / "src")

    names = {file for file, _, _ in found(read(tmp_path / "scripts", packages=("mine",)))}

    assert names == {"__init__.py", "one.py", "two.py", "three.py", "four.py"}


@pytest.mark.parametrize(
    ("module", "marks"),
    [
        (LOOP, False),
        (LOOP + "def validate(model):\n    return [model(x) for x in y]\n", False),
        (LOOP + "def validate(model):\n    for x in y:\n        model(x)\n", True),
        ("import traincheck_instrument as t\n@t.evaluation()\ndef validate(): pass\n", True),
    ],
    ids=["none", "a comprehension", "a loop", "by hand"],
)
def test_a_program_marks_its_evaluation_or_not(tmp_path, module, marks):
    """In whichever of its files; where it does not, the calls of the model may tell."""
    write(tmp_path, train="import other\n", other=module)

    assert read(tmp_path).marks_evaluation is marks


@pytest.mark.parametrize(
    ("module", "kinds"),
    [
        ("def attack(model):\n    for x in y:\n        model(x).backward()\n", set()),
        ("def validate(checks):\n    for check in checks:\n        check(1)\n    z.step\n", set()),
        (
            "@torch.no_grad()\ndef score(model):\n    for x in y:\n        model(x)\n",
            {"evaluation"},
        ),
        (
            LOOP + "def validate(model):\n    for x in y:\n        model(x)\n",
            {"training", "evaluation"},
        ),
    ],
    ids=["backward alone", "a name alone", "without gradients", "beside training"],
)
def test_only_what_is_sure_is_marked_in_a_module(tmp_path, module, kinds):
    """A module may go backward, or validate, for any reason."""
    write(tmp_path, train="import other\n", other=module)

    assert {kind for _, _, kind in found(read(tmp_path))} == kinds


def test_marks_by_hand_anywhere_hold_everywhere(tmp_path):
    """A step that a module marks itself is not begun a second time by the loop around it."""
    mark = "import traincheck_instrument as t\n@t.training_step\ndef update(): pass\n"
    write(tmp_path, train="import other, third\n" + LOOP, other=mark, third=LOOP)

    program = read(tmp_path)

    assert found(program) == set()
    assert program.by_hand == {"training_step"}
    assert program.steps_from == "hand"


def test_a_name_is_tracked_in_modules_only_if_the_script_does_not_bind_it(tmp_path):
    """`model` of a helper is not the model of the script."""
    write(
        tmp_path,
        train="import other\nmodel = Net()\n",
        other="model = teacher = Net()\n",
    )

    program = read(tmp_path, "model", "teacher")

    tracked = [(f.filename[-8:], n.name) for f in program.files for n in f.findings.tracked]
    assert tracked == [("train.py", "model"), ("other.py", "teacher")]


def test_modules_that_cannot_be_read_are_left_to_the_program(tmp_path):
    """A module that is no Python raises when the program imports it, and not before."""
    write(tmp_path, train="import broken\n", broken="for for")
    (tmp_path / "unreadable.py").mkdir()

    assert found(read(tmp_path)) == set()


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Import from a folder as a recorded program would; count the steps that are begun."""
    begun: list[dict[str, bool]] = []
    monkeypatch.setattr(traincheck_instrument, "start_step", lambda **how: begun.append(how))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(Current, "marks_steps_in_source", False)
    before = set(sys.modules)
    finder = OwnModules(OwnFiles(str(tmp_path)), partial(rewrite, models=(), is_module=True))
    finder.install()
    yield begun
    sys.meta_path.remove(finder)
    for name in set(sys.modules) - before:
        del sys.modules[name]


class Optimizer:
    def step(self):
        pass


@pytest.mark.usefixtures("steps")
def test_a_marked_module_is_otherwise_what_it_is(tmp_path, steps):
    """Its file, its source, its lines in tracebacks; a reload keeps the marks."""
    write(tmp_path, engine=LOOP)

    engine = importlib.import_module("engine")
    engine.fit(Optimizer(), [int, int])
    importlib.reload(engine).fit(Optimizer(), [int])

    assert len(steps) == 3
    assert Current.marks_steps_in_source
    assert engine.__file__ == str(tmp_path / "engine.py")
    assert inspect.getsource(engine) == LOOP
    assert engine.__spec__.cached.endswith(".pyc")
    with pytest.raises(TypeError) as caught:
        engine.fit(Optimizer(), [None])
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "batch()"


def test_no_code_with_marks_is_cached(tmp_path, steps):
    """The cache serves runs that are not recorded; what has no marks is cached as always."""
    write(tmp_path, engine=LOOP, idle=IDLE, almost="class A:\n    def f(self): self.step()\n")
    for name in ("engine", "idle", "almost"):
        importlib.import_module(name)

    cached = {path.name.partition(".")[0] for path in (tmp_path / "__pycache__").iterdir()}

    assert cached == {"idle", "almost"}
    assert not steps


def test_a_cache_without_marks_is_not_used(tmp_path, steps):
    """An earlier run that was not recorded left its cache."""
    write(tmp_path, engine=LOOP)
    finder = sys.meta_path.pop(0)
    importlib.import_module("engine")
    assert list((tmp_path / "__pycache__").iterdir())
    del sys.modules["engine"]
    sys.meta_path.insert(0, finder)

    importlib.import_module("engine").fit(Optimizer(), [int])

    assert len(steps) == 1


def test_packages_namespaces_and_archives_are_imported_as_always(tmp_path, steps, monkeypatch):
    """A package has its `__path__`; one without `__init__` too; a zip file is left alone."""
    write(tmp_path, pack__="from pack.engine import fit\n", pack__engine=LOOP)
    write(tmp_path, space__engine=LOOP)
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped.py", LOOP)
    monkeypatch.syspath_prepend(tmp_path / "archive.zip")

    for name in ("pack", "space.engine", "zipped"):
        importlib.import_module(name).fit(Optimizer(), [int])

    assert len(steps) == 2
    assert list(sys.modules["pack"].__path__) == [str(tmp_path / "pack")]


def test_a_folder_that_the_program_adds_to_its_path_counts(tmp_path, steps, monkeypatch):
    """`sys.path.append("src")`: relative, and not to be seen without running the program."""
    write(tmp_path / "src", added=LOOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, object(), "src"])

    importlib.import_module("added").fit(Optimizer(), [int])

    assert len(steps) == 1


@pytest.mark.usefixtures("steps")
def test_a_module_that_is_no_python_raises_its_own_error(tmp_path):
    """The import of the program says what is wrong, where."""
    write(tmp_path, broken="optimizer.step()\nfor for\n")

    with pytest.raises(SyntaxError) as caught:
        importlib.import_module("broken")

    assert (caught.value.filename, caught.value.lineno) == (str(tmp_path / "broken.py"), 2)
