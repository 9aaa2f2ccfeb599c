"""Training goes on as without us, whatever is done to a model, and its changes are seen.

One recording a tracker, in which all features are used one after another. Each feature trains a
model that it tracks, as programs do. What it returns tells two runs apart.
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
import warnings

import attrs
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize, prune

import traincheck_instrument as traincheck

TRACKERS = ("subclass", "proxy", "sampler")


class Net(nn.Module):
    """Two layers with a normalisation between them."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.bn = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.bn(functional.relu(self.fc(x))))


class Tied(nn.Module):
    """A layer that uses the weight of another."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)
        self.two = nn.Linear(4, 4)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model, optimizer=None, steps=2, dtype=torch.float32):
    """Train for some steps; return the losses and what the model is then."""
    optimizer = optimizer or sgd(model)
    seen = []
    for step in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        x = torch.linspace(-1, step + 1, 24, dtype=dtype).reshape(6, 4)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    return seen + state_of(model)


def state_of(model):
    return [value.detach().clone() for value in model.state_dict().values()]


def plain(track):
    return train(track(Net(), "plain"))


def tied(track):
    model = track(Tied(), "tied")
    optimizer = torch.optim.Adam(model.parameters())
    seen = train(model, optimizer)
    assert model.two.weight is model.one.weight
    assert len(optimizer.param_groups[0]["params"]) == 3
    return seen


def loading(track):
    model = track(Net(), "loading")
    saved = copy.deepcopy(model.state_dict())
    train(model)
    model.load_state_dict(saved)
    first = train(model)
    model.load_state_dict({key: value.clone() for key, value in saved.items()}, assign=True)
    return first + train(model)


def copying(track):
    model = track(Net(), "copying")
    average, shallow = copy.deepcopy(model), copy.copy(model)
    seen = train(model)
    with torch.no_grad():
        for mean, new in zip(average.parameters(), model.parameters(), strict=True):
            mean.lerp_(new, 0.5)
    assert type(average) is type(shallow) is Net
    assert shallow.fc is model.fc
    return seen + state_of(average)


def saving(track):
    model = track(Net(), "saving")
    train(model)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    state = torch.load(buffer, weights_only=True)
    whole = io.BytesIO()
    torch.save(model, whole)
    whole.seek(0)
    loaded = torch.load(whole, weights_only=False)
    unpickled = pickle.loads(pickle.dumps(model))  # noqa: S301  our own
    assert type(loaded) is type(unpickled) is Net
    assert {type(p) for p in [*loaded.parameters(), *unpickled.parameters()]} == {nn.Parameter}
    return [*train(model), *state.values(), *state_of(loaded), *state_of(unpickled)]


def converting(track):
    model = track(Net(), "converting")
    first = train(model)
    model.double()
    second = train(model, dtype=torch.float64)
    model.to(torch.bfloat16)
    model.half()
    model.float()
    return first + second + train(model)


def replacing(track):
    model = track(Net(), "replacing")
    first = train(model)
    model.head.weight = nn.Parameter(torch.ones(2, 4))
    model.fc = nn.Linear(4, 4)
    del model.bn
    model.bn = nn.Identity()
    return first + train(model)


def collections(track):
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.ParameterList([torch.ones(4), torch.ones(4)])
            self.named = nn.ParameterDict({"scale": torch.ones(4)})

        def forward(self, x):
            return x * self.rows[0] + self.rows[1] * self.named["scale"]

    return train(track(Listed(), "collections"))


def weight_norms(track):
    model = track(Net(), "weight_norms")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old one is deprecated
        nn.utils.weight_norm(model.fc)
    parametrizations.weight_norm(model.head)
    seen = train(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.remove_weight_norm(model.fc)
    parametrize.remove_parametrizations(model.head, "weight")
    return seen + train(model)


def spectral_norms(track):
    model = Net()
    parametrizations.spectral_norm(model.fc)
    nn.utils.spectral_norm(model.head)
    return train(track(model, "spectral_norms"))


def orthogonal(track):
    model = track(nn.Linear(4, 4), "orthogonal")
    parametrizations.orthogonal(model)
    seen = train(model)
    parametrize.remove_parametrizations(model, "weight")
    return seen + train(model)


def pruning(track):
    model = track(Net(), "pruning")
    prune.l1_unstructured(model.fc, "weight", amount=0.5)
    seen = train(model)
    prune.remove(model.fc, "weight")
    return seen + train(model)


def lazy(track):
    model = track(nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)), "lazy")
    model(torch.ones(1, 4))
    return train(model)


def lbfgs(track):
    model = track(Net(), "lbfgs")
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    x = torch.linspace(-1, 1, 24).reshape(6, 4)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    seen = []
    for _ in range(2):
        traincheck.start_step()
        seen.append(optimizer.step(closure).detach())
    return seen + state_of(model)


def optimizers(track):
    seen = []
    for name, options in (("foreach", {"foreach": True}), ("fused", {"fused": True})):
        model = track(Net(), f"optimizers_{name}")
        seen += train(model, torch.optim.AdamW(model.parameters(), **options))
    return seen


def checkpointing(track):
    class Checkpointed(Net):
        def forward(self, x):
            x = torch.utils.checkpoint.checkpoint(self.fc, x, use_reentrant=False)
            return torch.utils.checkpoint.checkpoint(self.head, x, use_reentrant=True)

    return train(track(Checkpointed(), "checkpointing"))


def amp(track):
    model = track(Net(), "amp")
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    seen = []
    for _ in range(2):
        traincheck.start_step()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.linspace(-1, 1, 24).reshape(6, 4)).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        seen.append(loss.detach())
    return seen + state_of(model)


def compiling(track):
    model = track(Net(), "compiling")
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    seen = train(compiled)
    again = track(compiled, "compiling")
    return seen + train(again)


def without_parameters(track):
    model = track(nn.Sequential(nn.ReLU(), nn.Flatten()), "without_parameters")
    traincheck.start_step()
    return [model(torch.linspace(-1, 1, 4).reshape(1, 4))]


def freed_storage(track):
    model = track(Net(), "freed_storage")
    first = train(model)
    storage = model.fc.weight.untyped_storage()
    kept, size = model.fc.weight.detach().clone(), storage.size()
    storage.resize_(0)
    traincheck.start_step()
    traincheck.start_step()
    storage.resize_(size)
    model.fc.weight.data.copy_(kept)
    return first + train(model)


def functional_calls(track):
    model = track(Net().eval(), "functional_calls")

    def loss_of(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).square().mean()

    x = torch.linspace(-1, 1, 24).reshape(6, 4)
    seen = []
    for _ in range(2):
        traincheck.start_step()
        parameters = dict(model.named_parameters())
        gradients = torch.func.grad(loss_of)(parameters, x)
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.sub_(0.1 * gradients[name])
    return seen + state_of(model)


def averaging(track):
    model = track(Net(), "averaging")
    average = torch.optim.swa_utils.AveragedModel(model)
    seen = train(model)
    average.update_parameters(model)
    torch.optim.swa_utils.update_bn([torch.ones(6, 4)], average)
    return seen + state_of(average)


def parameters_of_parameters(track):
    model = track(Net(), "parameters_of_parameters")
    model.head.weight = nn.Parameter(model.head.weight)
    frozen = nn.Parameter(model.fc.weight, requires_grad=False)
    assert isinstance(model.head.weight, nn.Parameter)
    assert isinstance(frozen, nn.Parameter)
    return [*train(model), frozen.detach().clone()]


def swapping(track):
    model = track(Net(), "swapping")
    before = [*model.parameters()]
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.double()
        model.load_state_dict(copy.deepcopy(model.state_dict()))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert all(one is other for one, other in zip(before, model.parameters(), strict=True))
    return train(model, dtype=torch.float64)


def initialising(track):
    model = track(Net(), "initialising")

    def start(module):
        if type(module) is nn.Linear:
            nn.init.ones_(module.weight)
        if module.__class__ is Net:
            nn.init.zeros_(module.head.bias)

    return train(model.apply(start))


def hooking(track):
    model = track(Net(), "hooking")
    met = []
    model.register_forward_hook(lambda module, *_: met.append(module is model))
    model.head.register_full_backward_hook(lambda module, *_: met.append(module is model.head))
    model.fc.weight.register_hook(lambda gradient: gradient * 2)
    model.fc.weight.register_post_accumulate_grad_hook(lambda p: met.append(p is model.fc.weight))
    seen = train(model)
    assert met == [True] * 6
    return seen


def freezing(track):
    model = track(Net(), "freezing")
    first = train(model)
    model.fc.weight.requires_grad = False
    model.head.requires_grad_(requires_grad=False)
    model.eval()
    return first + train(model.train())


FEATURES = {
    each.__name__: each
    for each in (
        *(plain, tied, loading, copying, saving, converting, replacing, collections),
        *(weight_norms, spectral_norms, orthogonal, pruning, lazy, lbfgs, optimizers),
        *(checkpointing, amp, compiling, without_parameters, freed_storage, functional_calls),
        *(averaging, parameters_of_parameters, swapping, initialising, hooking, freezing),
    )
}
_NET = ("fc.weight", "fc.bias", "bn.weight", "bn.bias", "head.weight", "head.bias")

# What changes, beside the six parameters of a Net, and of some what does instead.
CHANGED = {
    **{name: {f"{name}.{part}" for part in _NET} for name in FEATURES},
    "tied": {"tied.one.weight", "tied.one.bias", "tied.two.bias"},
    "collections": {"collections.rows.0", "collections.rows.1", "collections.named.scale"},
    "orthogonal": {"orthogonal.parametrizations.weight.original", "orthogonal.bias"},
    "lazy": {"lazy.0.weight", "lazy.0.bias", "lazy.2.weight", "lazy.2.bias"},
    "without_parameters": set(),
    "optimizers": {f"optimizers_{kind}.{part}" for kind in ("foreach", "fused") for part in _NET},
    "checkpointing": {f"checkpointing.{part}" for part in ("fc.weight", "fc.bias", "head.weight")},
    "weight_norms": {
        *(f"weight_norms.fc.weight_{part}" for part in "gv"),
        *(f"weight_norms.head.parametrizations.weight.original{part}" for part in "01"),
        *(f"weight_norms.{part}" for part in _NET),
    },
    "spectral_norms": {
        "spectral_norms.fc.parametrizations.weight.original",
        "spectral_norms.head.weight_orig",
    },
    "pruning": {"pruning.fc.weight_orig", *(f"pruning.{part}" for part in _NET)},
    "replacing": {f"replacing.{part}" for part in ("fc.weight", "fc.bias", "head.weight")},
}


def run_feature(feature, track):
    """Run a feature from a fixed seed; return what came out, or the exception."""
    torch.manual_seed(0)
    try:
        return feature(track)
    except Exception as error:  # noqa: BLE001  told by the test of the feature
        return error


untracked = functools.partial(lambda model, _name: model)


@attrs.frozen
class Runs:
    """What the features gave without and with a recording, and what this has seen."""

    plain: dict
    recorded: dict
    changed: frozenset


@pytest.fixture(scope="module")
def runs(record_at, tmp_path_factory):
    plain = {name: run_feature(feature, untracked) for name, feature in FEATURES.items()}
    made = {}
    for tracker in TRACKERS:
        with record_at(tmp_path_factory.mktemp(tracker), tracker=tracker) as run:
            recorded = {
                name: run_feature(feature, lambda model, name: traincheck.track(model, name=name))
                for name, feature in FEATURES.items()
            }
            traincheck.start_step()
        changed = frozenset(name for record in run.changes("data") for name in record["names"])
        made[tracker] = Runs(plain, recorded, changed)
    return made


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("tracker", TRACKERS)
def test_training_is_the_same_and_its_changes_are_seen(runs, tracker, feature):
    """Losses and weights have the bits of a run without us; each trained parameter changes."""
    run = runs[tracker]
    plain, recorded = run.plain[feature], run.recorded[feature]

    for outcome in (plain, recorded):
        if isinstance(outcome, Exception):
            raise outcome
    assert len(recorded) == len(plain)
    for one, other in zip(recorded, plain, strict=True):
        assert one.dtype is other.dtype
        assert torch.equal(one, other)
    assert CHANGED[feature] - run.changed == set()
