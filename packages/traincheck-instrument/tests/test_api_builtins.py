"""Recording of builtins and descriptors: torch goes on to know them."""

import pickle
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional

from traincheck_instrument.api.wrapper import is_wrapper
from traincheck_trace_schema.plan import FunctionPlan, Plan
from traincheck_trace_schema.plan_file import write_plan


@pytest.fixture
def with_builtins(record):
    with record(with_descriptors=True):
        yield


def test_builtins_and_methods_of_tensors_are_recorded(record):
    """Functions of the module and of `functional`, and methods, with the tensor as `self`."""
    with record(with_descriptors=True) as run:
        x = torch.cat([torch.ones(2), torch.zeros(1)])
        functional.linear(x, torch.ones(2, 3))
        x.add_(1, alpha=2)
        torch.linalg.norm(x)
        nn.Parameter(x).sum()

    calls = {one["function"]: one for one in run.records("call_begin")}
    assert {"torch.cat", "torch.nn.functional.linear", "torch.linalg.norm"} <= calls.keys()
    assert calls["torch.Tensor.add_"]["args"] == {"1": 1, "alpha": 2}
    assert calls["torch.Tensor.add_"]["self"]["tensor"]["shape"] == [3]
    (header,) = run.records("header")
    assert "torch.Stream.wait_event" in header["recording"]["not_wrapped"]
    assert "add_" not in vars(torch.Tensor)


def test_a_plan_that_names_builtins_gets_them(record, tmp_path):
    """It was learnt from a recording that had them; no others are recorded."""
    names = ("torch.Tensor.add_", "torch.cat", "torch.nn.functional.relu")
    functions = tuple(FunctionPlan(name=name) for name in names)
    write_plan(tmp_path / "plan.json", Plan(id="p", functions=functions, variables=()))

    with record(plan_path=tmp_path / "plan.json") as run:
        torch.cat([torch.ones(2)]).add_(1).mul_(2)
        functional.relu(torch.ones(1))

    assert [one["function"] for one in run.records("call_begin")] == [names[1], names[0], names[2]]


@pytest.mark.usefixtures("with_builtins")
def test_devices_are_contexts():
    """`with torch.device(...)` and a default device hold for constructors."""
    assert is_wrapper(torch.ones)
    with torch.device("meta"):
        assert torch.ones(2).device.type == "meta"
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).device.type == "meta"
        assert nn.Linear(2, 2).weight.device.type == "meta"
    finally:
        torch.set_default_device(None)


def test_tables_that_are_made_during_a_recording_are_of_functions():
    """In a process that needs devices and compilers first then, and goes on without a recording."""
    program = """
import torch, sys, tempfile, pathlib
from traincheck_instrument import session
from traincheck_instrument.api.wrapper import is_wrapper
from traincheck_instrument.settings import RecordingSettings
folder = pathlib.Path(tempfile.mkdtemp())
settings = dict(script=folder / "x.py", output_dir=folder, run_id="r", with_descriptors=True)
session.begin(RecordingSettings(**settings))
with torch.device("meta"):
    torch.ones(2)
import torch._dynamo
made = [name for name in sys.modules if name.startswith("torch._dynamo.")]
tables = [table for name in made for table in vars(sys.modules[name]).values()]
known = [one for table in tables if type(table) in (list, set, dict, tuple) for one in table]
session.end(clean=True)
with torch.device("meta"):
    print(torch.ones(2).device, torch.cat in torch.overrides.get_testing_overrides())
print(len(known) > 1000, any(map(is_wrapper, known)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ran.stdout == "meta True\nTrue False\n"


def test_builtins_are_pickled_by_a_name_that_anyone_can_load(record):
    """What is pickled during a recording is the builtin to a process without one."""
    with record(with_descriptors=True):
        held = pickle.dumps((torch.cat, functional.gelu, torch.Tensor.add_, torch.linalg.norm))
        assert pickle.loads(held)[0] is torch.cat  # noqa: S301

    loaded = pickle.loads(held)  # noqa: S301
    assert loaded == (torch.cat, functional.gelu, torch.Tensor.add_, torch.linalg.norm)
    assert type(loaded[0]) is type(len)


@pytest.mark.usefixtures("with_builtins")
def test_tables_of_overrides_are_those_of_torch():
    """Who asks which functions can be overridden gets functions that dispatch."""

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    overridable = torch.overrides.get_overridable_functions()

    assert torch.cat([torch.ones(1).as_subclass(Logged)]) == "cat"
    assert torch.ones(1).as_subclass(Logged).mul_(2) == "mul_"
    assert not [one for functions in overridable.values() for one in functions if is_wrapper(one)]


@pytest.mark.usefixtures("with_builtins")
def test_scripts_and_transforms_see_through():
    """Scripts are compiled, vmap and grad give what they give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert torch.jit.script(scripted)(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 2.0]
    x = torch.arange(4.0).reshape(2, 2)
    assert torch.func.vmap(torch.sum)(x).tolist() == [1.0, 5.0]
    assert torch.func.grad(torch.linalg.norm)(torch.tensor([3.0, 4.0])).tolist() == [
        pytest.approx(0.6),
        pytest.approx(0.8),
    ]


def scripted(x: torch.Tensor) -> torch.Tensor:
    return torch.mul(torch.relu(x), 2)


@pytest.mark.parametrize("wanted", [{"with_descriptors": True}, {"with_private": True}])
def test_training_is_bit_for_bit_the_same(record, wanted):
    """Also in full detail: same loss, same weights, same random numbers."""

    def train():
        torch.manual_seed(3)
        encoder = nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True)
        model = nn.Sequential(encoder, nn.Flatten(), nn.Linear(32, 2), nn.BatchNorm1d(2))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        for _ in range(4):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(torch.randn(6, 4, 8)), torch.arange(6) % 2)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        final = model(torch.randn(6, 4, 8))
        return [final, torch.rand(2), *model.state_dict().values()]

    plain = train()
    with record(**wanted) as run:
        recorded = train()

    assert all(map(torch.equal, plain, recorded))
    assert len(run.calls("torch.optim.AdamW.step")) == 4
