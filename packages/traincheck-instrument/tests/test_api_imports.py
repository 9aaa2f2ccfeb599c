"""Modules are covered whenever they are imported, and whoever has bound a name of them."""

import importlib
import subprocess
import sys

import pytest
import torch

from traincheck_instrument.api.imports import ImportFollower
from traincheck_instrument.settings import RecordingSettings
from traincheck_trace_schema.codec import loads


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a package of the program's, of files with contents; forget it afterwards."""

    def making(**files):
        folder = tmp_path / "mine"
        folder.mkdir()
        for name, code in files.items():
            (folder / f"{name}.py").write_text(code)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    yield making
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]


def called(run):
    return [one["function"] for one in run.records("call_begin")]


def test_a_package_is_covered_when_it_is_imported(record, package):
    """Under its public names, also where its own modules have bound one another's functions."""
    package(
        __init__="from .inner import work as work, twice",
        inner="""
def work(x, through=None):
    return x
def twice(x, act=work):
    return act(work(x)) * 2
""",
        other="""
from mine.inner import work
def again(x):
    return work(x)
""",
    )
    with record(modules=("mine",)) as run:
        import mine  # noqa: PLC0415  the case
        from mine.other import again  # noqa: PLC0415  the case

        assert mine.twice(1) == 2
        assert again(3) == mine.inner.work(3) == 3

    names = ["mine.twice", "mine.work", "mine.work", "mine.other.again", "mine.work", "mine.work"]
    assert called(run) == names
    functions = run.records("header")[-1]["recording"]["functions"]
    of_package = [name for name in functions if name.startswith("mine.")]
    assert of_package == ["mine.other.again", "mine.twice", "mine.work"]


def test_a_package_that_was_there_is_covered_where_its_names_are_bound(record, package):
    """Names that were bound before are replaced in every module, and given back."""
    package(__init__="", inner="def work(): return 1", user="from mine.inner import work as bound")
    user = importlib.import_module("mine.user")
    before = user.bound
    with record(modules=("mine",)) as run:
        during = user.bound
        assert during() == 1

    assert called(run) == ["mine.inner.work"]
    assert user.bound is before
    assert sys.modules["mine.inner"].work is before
    assert during() == 1


def test_a_module_that_is_loaded_anew_is_covered_anew(record, package):
    """`importlib.reload` makes new functions."""
    package(__init__="def work(): return 1")
    with record(modules=("mine",)) as run:
        mine = importlib.import_module("mine")
        mine.work()
        importlib.reload(mine).work()

    assert called(run) == ["mine.work"] * 2


def test_an_import_that_fails_fails_as_before(record, package):
    """With the program's own exception; what was complete until then is covered."""
    package(__init__="", inner="def work(): return 1", bad="import mine.inner\n1 / 0")
    with record(modules=("mine",)) as run:
        with pytest.raises(ZeroDivisionError) as caught:
            importlib.import_module("mine.bad")
        sys.modules["mine.inner"].work()

    assert "mine.bad" not in sys.modules
    assert caught.traceback[-1].path.name == "bad.py"
    assert called(run) == ["mine.inner.work"]


def test_torch_modules_that_are_imported_later_are_covered(record):
    """And no module is imported for the recording."""
    for name in [name for name in sys.modules if name.startswith("torch.signal")]:
        del sys.modules[name]
    with record() as run:
        windows = importlib.import_module("torch.signal.windows")
        windows.hann(4)

    assert called(run)[0] == "torch.signal.windows.hann"


def test_modules_look_as_they_look_without_us(record, package):
    """Loader, spec and file are those of Python; nothing follows imports afterwards."""
    package(__init__="", inner="")
    finders = list(sys.meta_path)
    with record(modules=("mine",)):
        inner = importlib.import_module("mine.inner")

    assert sys.meta_path == finders
    assert type(inner.__loader__) is importlib.machinery.SourceFileLoader
    assert vars(inner.__loader__).keys() == {"name", "path"}
    assert inner.__spec__.loader is inner.__loader__


def test_a_finder_of_the_programs_own_is_asked(record, package):
    """Who looks for modules before Python does goes on doing so, and is asked once."""
    package(__init__="", inner="def work(): return 1")
    asked = []

    class Finder:
        @staticmethod
        def find_spec(name, *_):
            asked.append(name)

    sys.meta_path.insert(0, Finder)
    try:
        with record(modules=("mine",)) as run:
            importlib.import_module("mine.inner").work()
    finally:
        sys.meta_path.remove(Finder)

    assert [name for name in asked if name.startswith("mine")] == ["mine", "mine.inner"]
    assert called(run) == ["mine.inner.work"]


def test_a_module_in_the_middle_of_its_import_waits_for_its_end(package):
    """What a package defines after it has imported torch belongs to it."""
    package(__init__="import mine.inner\ndef late(): pass", inner="")
    follower = ImportFollower.follow(["mine.inner"])
    ends = []
    follower.on_complete = lambda ran: ends.append((*ran, "late" in vars(sys.modules["mine"])))
    try:
        importlib.import_module("mine")
    finally:
        follower.stop()

    assert ends == [("mine", "mine.inner", True)]


def test_what_cannot_be_recorded_is_told(record):
    """The script itself, the standard library and TrainCheck's own: the header says why not."""
    with record(modules=("torch", "__main__", "json", "traincheck_instrument")) as run:
        torch.nn.functional.relu(torch.ones(1))

    (header,) = run.records("header")
    assert header["recording"]["not_observed"].keys() == {
        "__main__",
        "json",
        "traincheck_instrument",
    }


PROGRAM = """
from mine.early import early
import mine
from mine.late import late
from mine.model import Net, loss as criterion
import torch

early(); late()
modules = __import__("sys").modules
print(torch.__name__, [name for name in modules if name.startswith("torch._dynamo")])
net = Net()
optimizer = mine.Mine(net.parameters(), lr=0.1)
criterion(net(torch.ones(2, 3))).backward()
optimizer.step()
"""


def test_a_program_of_several_files_is_covered(package, tmp_path):
    """Also what was imported before torch, and the package in whose midst torch is imported."""
    package(
        __init__="""
from mine.early import early
import torch
class Mine(torch.optim.Adam):
    def step(self, closure=None):
        early()
        return super().step(closure)
""",
        early="def early(): return 1",
        late="from mine.early import early\ndef late(): return early()",
        model="""
import torch
from torch.nn.functional import relu
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
    def forward(self, x):
        return relu(self.linear(x))
def loss(x):
    return x.sum()
""",
    )
    (tmp_path / "train.py").write_text(PROGRAM)
    out = tmp_path / "out"
    out.mkdir()
    settings = {"script": tmp_path / "train.py", "output_dir": out, "run_id": "r"}
    RecordingSettings(modules=("mine", "torch"), **settings).write(out / "r.json")
    entry = "from traincheck_instrument.entry import run_program; run_program({!r})"

    command = [sys.executable, "-c", entry.format(str(out / "r.json"))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ran.stdout, ran.stderr) == ("torch []\n", "")
    (shard,) = out.glob("trace_*.json")
    records = [loads(line) for line in shard.read_text().splitlines()]
    begins = {one["id"]: one for one in records if one["kind"] == "call_begin"}
    outer = [one["function"] for one in begins.values() if "parent" not in one]
    assert outer == [
        "mine.early.early",
        "mine.late.late",
        "mine.model.Net.__init__",
        "torch.optim.Adam.__init__",
        "mine.model.Net.forward",
        "mine.model.loss",
        "torch.Tensor.backward",
        "mine.Mine.step",
    ]
    inner = {one["function"] for one in begins.values() if "parent" in one}
    assert {"mine.early.early", "torch.nn.functional.relu", "torch.nn.Linear.forward"} <= inner
    header = [one for one in records if one["kind"] == "header"][-1]
    assert "mine.Mine.step" in header["recording"]["functions"]
