"""Compiled code has no breaks of ours, and the trace says that it is not observed."""

import logging

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return functional.dropout(functional.gelu(self.norm(self.linear(x))), 0.0) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(x, torch.zeros(4, dtype=torch.long))


class Broken(nn.Module):
    """Breaks its graph by itself."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(12))

    def forward(self, x):
        for layer in self.layers:
            torch._dynamo.graph_break()
            x = functional.relu6(layer(x))
        return x


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def header(run):
    return run.records("header")[-1]["recording"]


@pytest.mark.parametrize("wanted", [{}, {"with_descriptors": True}, {"with_private": True}])
def test_a_compiled_model_is_one_graph(record, wanted):
    """With wrappers everywhere, training gives the same, and the header says what is not seen."""
    torch.manual_seed(0)
    model = Net()
    x = torch.randn(4, 3)
    model(x).backward()
    plain = [parameter.grad.clone() for parameter in model.parameters()]
    with record(**wanted) as run:
        model.zero_grad()
        model.eval().train()
        for block in model.blocks:
            block.norm.reset_running_stats()
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        compiled(x).backward()

    assert all(map(torch.equal, plain, (parameter.grad for parameter in model.parameters())))
    assert header(run)["not_observed"] == {
        f"forward of {__name__}.Net": "compiled by torch.compile: the calls in it that are "
        "compiled away are not recorded"
    }
    assert run.calls("torch.nn.Linear.forward") == []
    assert not [one for one in run.records("call_begin") if '"fake"' in str(one["args"])]


def test_a_model_of_torchs_own_layers_is_one_graph(record):
    """The compiler goes about it in another way, by who wrote the forward."""
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    x = torch.ones(1, 3)
    plain = model(x)
    with record():
        assert torch.equal(torch.compile(model, backend="eager", fullgraph=True)(x), plain)


def test_what_is_compiled_in_place_or_as_a_decorator_is_told(record):
    """`model.compile()`, a decorated function, a bound method: each by its name, once."""
    with record() as run:
        model = Net()
        model.compile(backend="eager")
        model(torch.randn(4, 3))

        def doubled(x):
            return nn.ReLU()(x) * 2

        decorate = torch.compile(backend="eager")
        assert decorate(doubled)(torch.ones(2)).tolist() == [2.0, 2.0]
        torch.compile(functional.softsign, backend="eager", fullgraph=True)(torch.ones(2))

    assert header(run)["not_observed"].keys() == {
        f"forward of {__name__}.Net",
        f"{__name__}.{doubled.__qualname__}",
        "torch.nn.functional.softsign",
    }
    assert run.calls("torch.nn.ReLU.forward") == []


def test_a_model_that_breaks_its_graph_is_compiled_as_without_us(record, caplog):
    """What runs between the graphs is recorded, and no wrapper is compiled anew for each call."""
    torch._dynamo.config.recompile_limit = 20
    model = Broken()
    x = torch.ones(1, 3)
    plain = model(x)
    counter = CompileCounter()
    torch.compile(model, backend=counter)(x)
    frames = counter.frame_count
    torch._dynamo.reset()
    counter.clear()
    with record(), caplog.at_level(logging.WARNING):
        compiled = torch.compile(model, backend=counter)
        assert torch.equal(compiled(x), plain)

    assert counter.frame_count == frames
    assert [message for message in caplog.messages if "recompile" in message] == []


def test_compilers_keep_functions_in_their_tables(record):
    """What is compiled after a recording finds what it finds without one."""
    with record():
        torch.compile(Block(), backend="eager")(torch.ones(2, 3))

    table = torch._dynamo.trace_rules.get_torch_obj_rule_map()
    assert not [
        key
        for key in table
        if hasattr(key, "__code__") and "passed over" in key.__code__.co_filename
    ]
    assert torch.compile(functional.relu, backend="eager", fullgraph=True)(torch.ones(1)) == 1


def test_a_recording_after_a_compilation_is_complete(record, tmp_path):
    """torch wraps the construction of modules when it first compiles, and with it what was ours."""
    with record(modules=("__main__",)):
        torch.compile(Block(), backend="eager")(torch.ones(2, 3))
    for shard in tmp_path.glob("trace_*"):
        shard.unlink()

    class Fresh(Block):
        __module__ = "__main__"

        def forward(self, x):
            return self.linear(x)

    Fresh()
    with record(modules=("__main__",)) as run:
        Fresh()(torch.ones(1, 3))

    assert len(run.calls(f"__main__.{Fresh.__qualname__}.forward")) == 1
