"""Which functions are found in packages, and by which names."""

import importlib
import sys
import types

import pytest
import torch

from traincheck_instrument.api.catalogue import Catalogue
from traincheck_instrument.api.scope import Scope


def find(*modules, **wanted):
    """Return the functions of torch, or of made modules, by name."""
    scope = Scope(roots=tuple(module.__name__ for module in modules) or ("torch",), **wanted)
    catalogue = Catalogue(scope)
    names = {module.__name__: module for module in modules} or {
        name: module for name, module in sys.modules.items() if isinstance(module, types.ModuleType)
    }
    return {function.name: function for function in catalogue.read(names)}, catalogue


@pytest.fixture(scope="module")
def api():
    functions, _ = find()
    return functions


def test_a_method_has_its_documented_name_and_those_it_overrides(api):
    """`SGD.step` is `torch.optim.SGD.step`, overrides `Optimizer.step`, and is known by file."""
    step = api["torch.optim.SGD.step"]

    assert step.bases == ("torch.optim.Optimizer.step",)
    assert "torch.optim.sgd.SGD.step" in step.aliases
    assert step.parameters[:1] == ("self",)


@pytest.mark.parametrize(
    "name",
    [
        "torch.Tensor.backward",
        "torch.autograd.backward",
        "torch.optim.Optimizer.zero_grad",
        "torch.nn.Linear.forward",
        "torch.nn.Module.train",
        "torch.nn.functional.cross_entropy",
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.init.normal_",
        "torch.distributed.all_reduce",
        "torch.GradScaler.step",
        "torch.optim.Adam.__init__",
        "torch.utils.data.DataLoader.__init__",
        "torch.utils.data.DataLoader.__iter__",
        "torch.utils.data.DistributedSampler.set_epoch",
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.Embedding.from_pretrained",
        "torch.nn.Transformer.generate_square_subsequent_mask",
    ],
)
def test_what_a_training_step_calls_is_found(api, name):
    """Functions, methods of all kinds and constructors are there as the documentation has them."""
    assert name in api


@pytest.mark.parametrize(
    "name",
    [
        "torch.is_tensor",
        "torch.get_default_dtype",
        "torch.nn.Module.parameters",
        "torch.nn.Module.register_buffer",
        "torch.nn.modules.linear.Linear.forward",
        "torch.optim.sgd.SGD.step",
        "torch.FloatTensor.backward",
        "torch.jit.script",
        "torch.no_grad.__enter__",
        "torch.nn.ModuleList.__iter__",
        "torch.autocast.__init__",
        "torch.autograd.Function.apply",
        "torch.FloatStorage.clone",
        "torch.nn.functional.handle_torch_function",
        "torch.nn.functional.linear",
        "torch.cat",
        "torch.Tensor.add_",
    ],
)
def test_what_says_nothing_about_training_is_left_out(api, name):
    """No question or registration, no second name, no builtin, no context that calls tell of."""
    assert name not in api


def test_an_inherited_method_has_the_name_under_which_it_is_documented(api):
    """`AdamW.step` is Adam's, `BatchNorm2d.forward` that of a class which has no public name."""
    assert api["torch.optim.AdamW.step"].bases == ("torch.optim.Optimizer.step",)
    assert "torch.optim.Adam.step" in api["torch.optim.AdamW.step"].aliases
    assert api["torch.nn.BatchNorm2d.forward"].original is torch.nn.BatchNorm2d.forward
    assert "torch.nn.Linear.train" not in api


def test_a_function_answers_to_all_its_public_paths(api):
    """`torch.amp.GradScaler.step`, as the documentation has it, is `torch.GradScaler.step`."""
    assert "torch.amp.GradScaler.step" in api["torch.GradScaler.step"].names


def test_builtins_are_found_when_asked_for():
    """Operators and methods of tensors, and what the dispatcher does for itself not."""
    functions, _ = find(with_builtins=True)

    assert {
        "torch.cat",
        "torch.nn.functional.linear",
        "torch.linalg.norm",
        "torch.Tensor.add_",
    } <= functions.keys()
    assert not {"torch.Parameter.add_", "torch.parse_ir", "torch.Tensor.size"} & functions.keys()
    assert functions["torch.Tensor.add_"].place.owner is torch.Tensor


def test_private_api_is_found_when_asked_for():
    """Names with an underscore, helper modules and tooling; compilers and the dispatcher never."""
    functions, _ = find(with_private=True)

    assert {
        "torch.nn.modules.batchnorm._BatchNorm.forward",
        "torch.optim.adam._single_tensor_adam",
        "torch.no_grad.__enter__",
        "torch.is_tensor",
    } <= functions.keys()
    closed = ("torch._C.", "torch.fx.", "torch.jit.", "torch.overrides.", "torch._ops.")
    assert not [name for name in functions if name.startswith(closed)]
    assert "torch.nn.Module._call_impl" not in functions


def test_a_users_optimizer_is_described_as_an_override():
    """A class outside torch that overrides `step` has its own name and torch's as a base."""

    class Mine(torch.optim.Optimizer):
        def step(self, closure=None):
            return closure

        def helper(self):
            pass

    _, catalogue = find()
    overrides = list(catalogue.overrides(Mine))

    assert [(one.name, one.bases) for one in overrides] == [
        (f"{__name__}.{Mine.__qualname__}.step", ("torch.optim.Optimizer.step",))
    ]
    assert not list(catalogue.overrides(torch.optim.SGD))


def test_a_module_of_the_users_overrides_forward():
    """`forward` is what every module has, though torch's own does nothing."""

    class Net(torch.nn.Module):
        def forward(self, x):
            return x

    _, catalogue = find()

    (forward,) = catalogue.overrides(Net)
    assert forward.bases == ("torch.nn.Module.forward",)


@pytest.fixture
def make(tmp_path, monkeypatch):
    def making(code):
        (tmp_path / "mine.py").write_text(code)
        return importlib.import_module("mine")

    monkeypatch.syspath_prepend(tmp_path)
    yield making
    del sys.modules["mine"]


def test_a_users_package_offers_what_has_no_underscore(make):
    """Functions and all kinds of methods that it defines, questions too; what it imports not."""
    module = make(
        """
from torch.nn.functional import relu
from functools import lru_cache, partial
def is_good(x): return True
def _hidden(): pass
@lru_cache
def cached(): pass
bound = partial(is_good, 1)
class Loader:
    def __init__(self): pass
    def __enter__(self): return self
    def __exit__(self, *error): pass
    def __len__(self): return 1
    @staticmethod
    def of(path): pass
    @classmethod
    def all(cls): pass
    @property
    def size(self): return 1
    alias = is_good
""",
    )

    functions, _ = find(module)

    names = ["__enter__", "__exit__", "__init__", "all", "of"]
    assert sorted(functions) == [*(f"mine.Loader.{name}" for name in names), "mine.is_good"]
    assert functions["mine.Loader.all"].is_method
    assert not functions["mine.Loader.of"].is_method


def test_reading_a_package_runs_none_of_its_code(make):
    """Neither a metaclass nor an object of the module is asked for anything."""
    module = make(
        """
asked = []
class Meta(type):
    def __getattribute__(cls, name): asked.append(name); return super().__getattribute__(name)
    def __hash__(cls): asked.append("hash"); return 1
    def __eq__(cls, other): asked.append("eq"); return False
class Thing(metaclass=Meta):
    def act(self): pass
class Proxy:
    def __getattribute__(self, name): asked.append(name); raise RuntimeError
proxy = Proxy()
asked.clear()
""",
    )

    functions, _ = find(module)

    assert "mine.Thing.act" in functions
    assert module.asked == []


def test_what_traincheck_itself_uses_is_closed():
    """Not even if asked for: the thread that writes records would record itself."""
    scope = Scope(roots=("json", "attrs", "traincheck_instrument", "torch"), with_private=True)

    assert [scope.has(name) for name in ("json", "attrs", "traincheck_instrument.recorder")] == [
        False
    ] * 3
    assert scope.has("torch.nn")
