"""Wrapped functions are, to whoever looks at them, the functions that they were."""

import importlib
import inspect
import pickle
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional

from traincheck_instrument.api.wrapper import is_wrapper

MINE = """
import contextlib, functools, inspect, warnings, torch

def plain(a, b=2, *, c=3):
    '''Add.'''
    return a + b + c
plain.mark = "mine"

def warns():
    warnings.warn("mind the caller", stacklevel=2)

def numbers(n):
    yield from range(n)

async def later():
    return 1

@functools.singledispatch
def single(value):
    return "any"

@single.register
def _(value: int):
    return "int"

@functools.lru_cache
def cached(n):
    return n

half = functools.partial(plain, 1)

@contextlib.contextmanager
def within(n):
    yield n

class Thing:
    def __init__(self, n=1):
        self.n = n

    def __call__(self, x):
        return self.n + x

    def method(self, x):
        return self.n * x

    @staticmethod
    def fixed(x):
        return x

    @classmethod
    def made(cls, n):
        return cls(n)

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mine")
    del sys.modules["mine"]


def test_a_wrapper_tells_of_itself_what_the_function_tells(record, mine):
    """Signature, source, defaults, name, documentation and attributes are the function's."""
    before = mine.plain
    signature, source = inspect.signature(functional.relu), inspect.getsource(functional.relu)
    with record(modules=("mine", "torch")):
        after = mine.plain
        assert is_wrapper(after)
        assert after is mine.plain
        assert (after.__name__, after.__qualname__, after.__module__) == ("plain", "plain", "mine")
        assert (after.__defaults__, after.__kwdefaults__) == ((2,), {"c": 3})
        assert (after.__doc__, after.mark) == ("Add.", "mine")
        assert inspect.signature(after) == inspect.signature(before)
        assert inspect.signature(functional.relu) == signature
        assert inspect.getsource(functional.relu) == source
        assert inspect.signature(mine.Thing) == inspect.Signature([N])


def test_who_does_not_look_behind_a_wrapper_reads_the_same_parameters(record):
    """`getfullargspec` follows no `__wrapped__`; a signature can be bound, changed and copied."""
    asked = (functional.dropout, nn.Linear.__init__, nn.Linear, nn.Linear(1, 1).forward)
    plain = [(inspect.getfullargspec(one), inspect.signature(one)) for one in asked]
    with record():
        asked = (functional.dropout, nn.Linear.__init__, nn.Linear, nn.Linear(1, 1).forward)
        assert is_wrapper(asked[0])
        assert [(inspect.getfullargspec(one), inspect.signature(one)) for one in asked] == plain
        signature = inspect.signature(functional.dropout)
        copied = pickle.loads(pickle.dumps(signature))  # noqa: S301  made right here

    assert copied == signature == plain[0][1]
    assert type(copied) is inspect.Signature
    assert repr(signature) == repr(plain[0][1])
    assert signature.bind(1, p=2).arguments == {"input": 1, "p": 2}
    assert signature.replace(return_annotation=int).return_annotation is int
    assert "__signature__" not in vars(functional.dropout)


N = inspect.Parameter("n", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=1)


def test_generators_and_coroutines_are_left_alone(record, mine):
    """A call of one does nothing yet; the header says that they are not wrapped."""
    with record(modules=("mine",)) as run:
        assert inspect.isgeneratorfunction(mine.numbers)
        assert inspect.iscoroutinefunction(mine.later)
        assert list(mine.numbers(3)) == [0, 1, 2]

    (header,) = run.records("header")
    assert header["recording"]["not_wrapped"].keys() == {"mine.numbers", "mine.later"}
    assert "mine.plain" in header["recording"]["functions"]


def test_all_kinds_of_methods_are_recorded(record, mine):
    """Static and class methods, construction and call: with `self`, the class, or neither."""
    with record(modules=("mine",)) as run:
        thing = mine.Thing.made(2)
        assert (thing(1), thing.method(3), thing.fixed(4), mine.Thing.fixed(5)) == (3, 6, 4, 5)

    calls = run.records("call_begin")
    assert [call["function"].removeprefix("mine.Thing.") for call in calls] == [
        "made",
        "__init__",
        "__call__",
        "method",
        "fixed",
        "fixed",
    ]
    assert calls[0]["self"]["object"]["attributes"]["name"] == "mine.Thing"
    assert calls[0]["args"] == {"n": 2}
    assert calls[4]["args"] == {"x": 4}
    assert "self" not in calls[4]


def test_objects_that_can_be_called_stay_as_they_are(record, mine):
    """`partial`, what `lru_cache` makes: they have a behaviour of their own."""
    with record(modules=("mine",)):
        assert mine.half() == 6
        assert mine.cached(1) == 1
        assert mine.cached.cache_info().currsize == 1
        assert mine.single(1) == "int"
        assert mine.single.registry.keys() == {object, int}
        with mine.within(4) as entered:
            assert entered == 4


def test_pickles_name_the_function(record, mine):
    """Functions, bound methods and classes are pickled by name, and found by it."""
    with record(modules=("mine", "torch")):
        for one in (mine.plain, functional.relu, nn.Linear, torch.optim.SGD.step):
            assert pickle.loads(pickle.dumps(one)) is one  # noqa: S301
        bound = pickle.loads(pickle.dumps(mine.Thing(3).method))  # noqa: S301
        assert bound(2) == 6
        held = pickle.dumps(functional.relu)

    assert pickle.loads(held) is functional.relu  # noqa: S301


def test_a_warning_about_the_caller_names_the_caller(record, mine):
    """Frames of wrappers are not counted."""
    with record(modules=("mine", "torch")), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mine.warns()
        functional.softmax(torch.ones(2))

    assert [warning.filename for warning in caught] == [__file__, __file__]


def test_autograd_functions_of_the_user_work(record, mine):
    """Their static methods are recorded, the gradient is right, compiled and not."""
    x = torch.ones(2, requires_grad=True)
    with record(modules=("mine",)) as run, warnings.catch_warnings():
        mine.Double.apply(x).sum().backward()
        # The compiler makes an object of the class.
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled = torch.compile(
            lambda x: mine.Double.apply(x) + 1, backend="eager", fullgraph=True
        )
        assert compiled(x).tolist() == [3.0, 3.0]

    assert x.grad.tolist() == [2.0, 2.0]
    assert len(run.calls("mine.Double.forward")) == len(run.calls("mine.Double.backward")) == 1


def test_functional_transforms_see_through(record):
    """grad, vmap, jacrev and functional_call give what they gave."""
    model = nn.Linear(2, 2)
    x = torch.randn(3, 2)

    def loss(parameters, x):
        return functional.relu6(torch.func.functional_call(model, parameters, (x,))).sum()

    parameters = dict(model.named_parameters())
    plain = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    jacobian = torch.func.jacrev(functional.softsign)(x)
    with record():
        again = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
        assert torch.equal(torch.func.jacrev(functional.softsign)(x), jacobian)

    assert all(torch.equal(plain[name], again[name]) for name in plain)


def test_modes_of_the_program_see_what_they_saw(record):
    """Modes of functions and of dispatch, and fake tensors, get the same operations."""

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Dispatch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    def run():
        seen.clear()
        with Functions():
            functional.relu6(torch.ones(2))
        with Dispatch():
            functional.layer_norm(torch.ones(2), (2,))
        with torch._subclasses.FakeTensorMode():
            seen.append(nn.Linear(2, 3)(torch.ones(1, 2)).shape)
        return list(seen)

    seen = []
    plain = run()
    with record():
        assert run() == plain


def test_a_traced_module_is_what_it_is_without_us(record):
    """fx and jit note the functions themselves, with or without wrappers in place."""

    class Net(nn.Module):
        __module__ = "__main__"

        def forward(self, x):
            return functional.relu(x) + torch.cat([x, x]).mean()

    plain = torch.fx.symbolic_trace(Net())
    with record(modules=("torch", "__main__")) as run:
        net = Net()
        traced = torch.fx.symbolic_trace(net)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            graph = torch.jit.trace(net, torch.ones(2)).graph
        net(torch.ones(2))

    targets = [node.target for node in plain.graph.nodes]
    assert [node.target for node in traced.graph.nodes] == targets
    assert "aten::size" not in str(graph)
    assert len(run.calls(f"__main__.{Net.__qualname__}.forward")) == 1


def test_overrides_of_the_script_are_recorded_if_it_is_named(record):
    """Those that change variables always; others with `__main__`, or when the plan names them."""

    class Net(nn.Module):
        __module__ = "__main__"

        def forward(self, x):
            return x

        def load_state_dict(self, state):
            return super().load_state_dict(state)

    with record() as run:
        Net()(1)
        Net().load_state_dict({})

    prefix = f"__main__.{Net.__qualname__}"
    assert run.calls(f"{prefix}.forward") == []
    assert len(run.calls(f"{prefix}.load_state_dict")) == 1
    assert run.calls("torch.nn.Module.load_state_dict") == []
