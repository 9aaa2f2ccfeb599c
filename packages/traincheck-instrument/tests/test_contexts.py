"""Which contexts a call is recorded with."""

import contextlib
import gc
import importlib
import sys
import threading
import weakref
from contextlib import contextmanager

import pytest
import torch
from torch import distributed, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

from traincheck_instrument import session
from traincheck_instrument.settings import RecordingSettings
from traincheck_trace_schema.plan import FunctionPlan, Plan
from traincheck_trace_schema.plan_file import write_plan

RELU = "torch.nn.ReLU.forward"
MANAGER = contextlib._GeneratorContextManager


def call():
    nn.ReLU()(torch.ones(2))


def contexts(run):
    return [one.get("ctx", {}) for one in run.calls(RELU)]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the program that offers context managers."""
    (tmp_path / "trainers.py").write_text(
        "from contextlib import contextmanager\n"
        "@contextmanager\n"
        "def holding(tensor, *, how='gently'):\n"
        "    yield tensor\n"
        "@contextmanager\n"
        "def _private():\n"
        "    yield\n"
        "class Trainer:\n"
        "    @contextmanager\n"
        "    def no_sync(self):\n"
        "        yield\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trainers", raising=False)
    return importlib.import_module("trainers")


def test_without_a_context_nothing_is_told(record):
    """What is as it is by default takes no room in a record."""
    with record() as run:
        call()

    assert "ctx" not in run.calls(RELU)[0]


@pytest.mark.parametrize(
    ("manager", "told"),
    [
        (torch.no_grad, {"grad_mode": False}),
        (lambda: torch.set_grad_enabled(False), {"grad_mode": False}),
        (torch.inference_mode, {"grad_mode": False, "inference_mode": True}),
        (
            lambda: torch.autocast("cpu", dtype=torch.bfloat16),
            {"autocast.device_type": "cpu", "autocast.dtype": {"dtype": "bfloat16"}},
        ),
        (
            lambda: torch.autocast("xpu", dtype=torch.float16, cache_enabled=False),
            {
                "autocast.device_type": "xpu",
                "autocast.dtype": {"dtype": "float16"},
                "autocast.cache_enabled": False,
            },
        ),
        (lambda: torch.autograd.set_detect_anomaly(True), {"anomaly_mode": True}),
        (
            lambda: torch.backends.cudnn.flags(enabled=False),
            {"flags": True, "flags.enabled": False},
        ),
        (
            lambda: sdpa_kernel(SDPBackend.MATH, set_priority=True),
            {
                "sdpa_kernel": True,
                "sdpa_kernel.backends": {"object": {"type": "torch.nn.attention._SDPBackend"}},
                "sdpa_kernel.set_priority": True,
            },
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_a_context_is_told_while_it_is_active(record, manager, told):
    """Calls inside name the context with its arguments, those before and after do not."""
    with record() as run:
        call()
        with manager():
            call()
        call()

    assert contexts(run) == [{}, told, {}]


def test_the_innermost_context_of_a_kind_holds(record):
    """Autocast that is switched off inside of autocast is off; gradients come back the same way."""
    with record() as run, torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        with torch.autocast("cpu", enabled=False), torch.enable_grad():
            call()
        call()

    inner, outer = contexts(run)
    assert inner == {}
    assert outer["autocast.dtype"] == {"dtype": "bfloat16"}
    assert outer["grad_mode"] is False


def test_nested_managers_of_one_name_hold_in_their_order(record, package):
    """The arguments are those of the innermost, and of the outer again when it is left."""
    with record(modules=("torch", "trainers")) as run, package.holding(1, how="tightly"):
        with package.holding(2):
            call()
        call()

    assert contexts(run) == [
        {"holding": True, "holding.tensor": 2},
        {"holding": True, "holding.tensor": 1, "holding.how": "tightly"},
    ]


def test_gradients_that_are_held_back_are_told(record):
    """`no_sync` of DistributedDataParallel is a context of forward and backward."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        with record() as run:
            model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
            with model.no_sync():
                model(torch.ones(1, 2)).sum().backward()
            model(torch.ones(1, 2)).sum().backward()
    finally:
        distributed.destroy_process_group()

    assert contexts(run) == [{"no_sync": True}, {}]
    backwards = run.calls("torch.Tensor.backward")
    assert [one.get("ctx") for one in backwards] == [{"no_sync": True}, None]


def test_a_plan_names_the_contexts_that_are_told(record, tmp_path):
    """Of all that is active the plan's contexts are told, by the first part of their names."""
    functions = (FunctionPlan(name=RELU),)
    plan = Plan(id="p", functions=functions, variables=(), contexts=("autocast", "sdpa_kernel"))
    write_plan(tmp_path / "plan.json", plan)
    with record(plan_path=tmp_path / "plan.json") as run:
        with torch.no_grad(), torch.autocast("cpu"), torch.backends.cudnn.flags(enabled=False):
            call()
        with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
            call()

    first, second = contexts(run)
    assert set(first) == {"autocast.device_type", "autocast.dtype"}
    assert set(second) == {"sdpa_kernel", "sdpa_kernel.backends"}


@pytest.mark.parametrize(
    ("modules", "told"), [(("torch",), {}), (("torch", "trainers.deep"), {"no_sync": True})]
)
def test_only_public_managers_of_recorded_packages_are_told(record, package, modules, told):
    """Not those of other packages, nor private ones, nor those of the program's own functions."""

    @contextmanager
    def mine():
        yield

    with record(modules=modules) as run, package.Trainer().no_sync(), package._private(), mine():
        call()

    assert contexts(run) == [told]


def test_each_thread_has_its_own(record, package):
    """A context that one thread enters is no context of another."""
    with record(modules=("torch", "trainers")) as run, package.holding(1), torch.no_grad():
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        call()

    assert contexts(run) == [{}, {"grad_mode": False, "holding": True, "holding.tensor": 1}]


def test_a_context_ends_however_it_is_left(record, package):
    """By an exception, out of order, by a thread that did not enter it, and as a decorator."""
    first, second, third = (package.holding(number) for number in range(3))
    with record(modules=("torch", "trainers")) as run:
        with pytest.raises(KeyError), package.holding(0):
            raise KeyError
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        call()
        second.__exit__(None, None, None)
        third.__enter__()
        thread = threading.Thread(target=third.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        call()
        package.holding(4)(call)()
        call()

    numbers = [told.get("holding.tensor") for told in contexts(run)]
    assert numbers == [1, None, 4, None]


def test_arguments_of_contexts_stay_alive_no_longer(record, package):
    """A tensor that a context was entered with is freed as it would be."""
    with record(modules=("torch", "trainers")):
        tensor = torch.ones(2)
        seen = weakref.ref(tensor)
        with package.holding(None) as _, package.holding(tensor):
            pass
        del tensor
        gc.collect()

        assert seen() is None


def test_managers_behave_as_they_do_unrecorded(record, package):
    """What they yield, what they raise when used wrongly, and the class that they are of."""
    with record(modules=("torch", "trainers")):
        with package.holding("x") as given:
            assert given == "x"
        used = package.holding(1)
        with used:
            pass
        with pytest.raises(AttributeError, match="args"):
            used.__enter__()
        assert type(used) is MANAGER


def test_a_fault_of_ours_leaves_the_context_as_it_is(record, package, capsys):
    """If an argument can't be told, the context is entered all the same, and a gap says so."""

    def fail(_):
        raise ZeroDivisionError

    with record(modules=("torch", "trainers")) as run:
        run.recorder.faults.strict = False
        encode, run.recorder.contexts.encode = run.recorder.contexts.encode, fail
        with package.holding(1) as given:
            assert given == 1
        run.recorder.contexts.encode = encode
        call()

    assert "ZeroDivisionError" in run.records("gap")[0]["detail"]
    assert "training goes on" in capsys.readouterr().err


def test_removing_puts_the_very_methods_back(tmp_path):
    """After the recording the class of the standard library is what it was."""
    before = MANAGER.__enter__, MANAGER.__exit__
    settings = RecordingSettings(script=tmp_path / "a.py", output_dir=tmp_path, run_id="run")
    for _ in range(2):
        current = session.begin(settings)
        assert (MANAGER.__enter__, MANAGER.__exit__) != before
        current.uninstall()
        current.uninstall()
        session.end(clean=True)

    assert (MANAGER.__enter__, MANAGER.__exit__) == before


def test_compiled_code_enters_managers_in_one_graph(record):
    """The compiler traces through what follows the managers, and breaks no graph for it."""

    @contextmanager
    def doubling():
        yield 2

    def step(x):
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), doubling() as factor:
            return x * factor

    with record():
        compiled = torch.compile(step, backend="eager", fullgraph=True)
        result = compiled(torch.ones(2))

    assert torch.equal(result, torch.full((2,), 2.0))
