"""What each tracker does to a model, what it sees of it, and what it leaves alone."""

from __future__ import annotations

import linecache
import sys
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _default_to_fused_or_foreach

import traincheck_instrument as traincheck
from traincheck_instrument.trackers.limits import unseen_by
from traincheck_instrument.trackers.parameter import TrackedParameter
from traincheck_trace_schema.plan import FunctionPlan, Plan, VariablePlan
from traincheck_trace_schema.plan_file import write_plan


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(self.fc(x))

    def scale(self):
        self.fc.weight.data.mul_(2)


def train(model, optimizer, steps):
    for _ in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        model(torch.arange(12.0).reshape(4, 3)).square().mean().backward()
        optimizer.step()


def lines(run, records):
    """Return the lines of user code that records name."""
    sources = {one["id"]: one for one in run.records("source")}
    named = [sources[one["src"]] for one in records if "src" in one]
    return [linecache.getline(one["file"], one["line"]).strip() for one in named]


def changed(run, name, role="parameter"):
    """Return the records that tell that the data of a variable is another."""
    return [one for one in run.changes("data", role) if name in one["names"]]


def appeared(run, name):
    """Return the records that tell that a variable has come."""
    return [
        one
        for one in run.records("var")
        if one["event"] == "appeared" and name in one["names"] and one["step"] >= 0
    ]


@pytest.mark.parametrize("tracker", ["subclass", "proxy", "sampler"])
def test_a_tracked_model_is_the_object_that_it_was(record, tracker):
    """So are its parts; it is an instance of its class, says so, and has it again afterwards."""
    model = Net()
    parts = [*model.modules(), *model.parameters(), *model.buffers()]
    with record(tracker=tracker):
        assert traincheck.track(model, name="model") is model
        now = [*model.modules(), *model.parameters(), *model.buffers()]
        assert all(one is other for one, other in zip(now, parts, strict=True))
        assert isinstance(model, Net)
        assert model.__class__ is Net
        assert type(model.fc) is nn.Linear
        assert repr(model) == repr(Net())

    assert type(model) is Net
    assert {type(one) for one in model.parameters()} == {nn.Parameter}


@pytest.mark.parametrize("tracker", ["subclass", "proxy"])
def test_optimizers_take_the_same_way(record, tracker):
    """Whether an optimizer is fused or foreach does not depend on us."""
    model = Net()
    ways = [
        _default_to_fused_or_foreach([*model.parameters()], differentiable=False, use_fused=fused)
        for fused in (False, True)
    ]
    with record(tracker=tracker):
        traincheck.track(model, name="model")
        parameters = [*model.parameters()]
        assert type(parameters[0]) is TrackedParameter
        assert ways == [
            _default_to_fused_or_foreach(parameters, differentiable=False, use_fused=fused)
            for fused in (False, True)
        ]


@pytest.mark.parametrize("tracker", ["subclass", "proxy", "sampler"])
def test_a_model_is_shared_with_another_process_in_the_same_memory(record, tracker):
    """What is sent there is plain; what it trains there, as in Hogwild, is trained here."""
    model = Net().share_memory()
    with record(tracker=tracker):
        traincheck.track(model, name="model")
        sent = ForkingPickler.dumps(model)
    received = ForkingPickler.loads(sent)
    with torch.no_grad():
        received.fc.weight.fill_(7)

    assert type(received) is Net
    assert {type(one) for one in received.parameters()} == {nn.Parameter}
    assert model.fc.weight.eq(7).all()


@pytest.mark.parametrize("tracker", ["subclass", "proxy"])
def test_steps_that_are_left_out_meet_plain_parameters(record, monkeypatch, tracker):
    """In a step that is not recorded parameters have their own class, the model always has."""
    if (compiler := sys.modules.get("torch._dynamo.utils")) is not None:
        monkeypatch.delitem(compiler.counters, "frames", raising=False)  # of other tests
    model = Net()
    kinds = []
    with record(tracker=tracker, interval=3) as run:
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            train(model, optimizer, steps=1)
            kinds.append((type(model) is Net, type(model.fc.weight) is nn.Parameter))

    recorded, left_out = (True, False), (True, True)
    assert kinds == [recorded, left_out, left_out, recorded, left_out]
    assert {one["step"] for one in changed(run, "model.fc.weight")} == {0, 3}


@pytest.mark.parametrize("tracker", ["subclass", "proxy"])
def test_what_is_compiled_is_compiled_once(record, tracker):
    """The classes stay as they are once the compiler has seen them, also in steps left out."""
    model = nn.Linear(3, 3)
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    with record(tracker=tracker, interval=2):
        traincheck.track(model, name="model")
        compiled = torch.compile(model, backend=backend)
        train(compiled, torch.optim.SGD(model.parameters(), lr=0.1), steps=4)

    assert len(graphs) == 1
    torch.compiler.reset()


@pytest.mark.parametrize("tracker", ["subclass", "proxy"])
def test_an_assignment_to_a_parameter_names_its_line(record, tracker):
    """Also if gradients alone were looked at since."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tracker=tracker) as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        weight = model.fc.weight
        weight.data = weight.detach() + 1
        optimizer.zero_grad()
        traincheck.start_step()

    assert lines(run, changed(run, "model.fc.weight")) == ["weight.data = weight.detach() + 1"]


def test_a_proxy_names_the_line_that_reached_what_changed(record):
    """A write through the model, to a parameter or a buffer, however it is done."""
    model = Net()
    with record(tracker="proxy") as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        model(torch.ones(2, 3))
        traincheck.start_step()
        model.fc.weight.data.mul_(2)
        model.bn.running_mean.fill_(7)
        traincheck.start_step()
        for parameter in model.parameters():
            torch._foreach_add_([parameter.data], 1)
        traincheck.start_step()

    weight = changed(run, "model.fc.weight")
    assert lines(run, weight) == [
        "model.fc.weight.data.mul_(2)",
        "for parameter in model.parameters():",
    ]
    mean = changed(run, "model.bn.running_mean", "buffer")
    assert lines(run, [one for one in mean if one["step"] == 1]) == [
        "model.bn.running_mean.fill_(7)"
    ]


def test_a_proxy_names_no_line_that_it_cannot_know(record):
    """Neither that of the model's own method, nor any if several reached what changed."""
    model = Net()
    with record(tracker="proxy") as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        model.scale()
        traincheck.start_step()
        assert model.fc.weight.requires_grad
        model.fc.weight.data.mul_(2)
        traincheck.start_step()

    changes = changed(run, "model.fc.weight")
    assert [one["step"] for one in changes] == [0, 1]
    assert lines(run, changes) == []


def test_only_a_proxy_sees_parts_put_in_place_at_once(record_at, tmp_path):
    """It tells the new parameters before the step goes on, with the line; others, when it ends."""
    seen = {}
    for tracker in ("proxy", "subclass", "sampler"):
        folder = tmp_path / tracker
        folder.mkdir()
        model = Net()
        with record_at(folder, tracker=tracker) as run:
            traincheck.track(model, name="model")
            traincheck.start_step()
            model.fc = nn.Linear(3, 3)
            model.register_parameter("extra", nn.Parameter(torch.ones(1)))
            nn.functional.relu6(torch.ones(1))
            traincheck.start_step()
        (call,) = run.calls("torch.nn.functional.relu6")
        (new,), (extra,) = appeared(run, "model.fc.weight"), appeared(run, "model.extra")
        seen[tracker] = new["seq"] < call["seq"], lines(run, [new, extra])

    registering = 'model.register_parameter("extra", nn.Parameter(torch.ones(1)))'
    assert seen["proxy"] == (True, ["model.fc = nn.Linear(3, 3)", registering])
    assert seen["subclass"] == seen["sampler"] == (False, [])


def test_a_sampler_looks_when_an_optimizer_has_stepped_and_when_a_step_ends(record):
    """At nothing else; it changes no class, and a change names no call: nobody saw it begin."""
    model = Net()
    with record(tracker="sampler", interval=2) as run:
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        assert type(model.fc.weight) is nn.Parameter
        assert type(model) is Net
        train(model, optimizer, steps=4)
        traincheck.start_step()

    looks = {
        (one["step"], one.get("function"), one["phase"])
        for one in run.records("observe")
        if "parameter" in one["roles"] and one["step"] in range(4)
    }
    assert looks == {
        (step, *look)
        for step in (0, 2)
        for look in (("torch.optim.SGD.step", "end"), (None, "step_end"))
    }
    changes = changed(run, "model.fc.weight")
    assert [one["step"] for one in changes] == [0, 2]
    assert all("call" not in one and "between" in one for one in changes)
    assert run.records("header")[-1]["tracker"] == "sampler"
    (unseen,) = run.records("header")[-1]["recording"]["not_observed"]
    assert unseen == "gradients and requires_grad between optimizer steps"


def test_a_sampler_also_looks_where_a_plan_compares_variables(record, tmp_path):
    """At the begin, or the end, that is asked for; gradients written in place are seen."""
    step, backward = "torch.optim.Optimizer.step", "torch.Tensor.backward"
    plan = Plan(
        id="p",
        functions=tuple(FunctionPlan(name=name) for name in (step, backward)),
        variables=(VariablePlan(role="parameter", attributes=("data", "grad")),),
        observe_before=(step,),
        observe_after=(backward,),
    )
    write_plan(tmp_path / "plan.json", plan)
    model = Net()
    with record(tracker="sampler", plan_path=tmp_path / "plan.json") as run:
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        traincheck.start_step()
        model(torch.ones(4, 3)).sum().backward()
        model.fc.weight.grad.numpy()[:] = 7
        optimizer.step()

    looks = [
        (one.get("function"), one["phase"]) for one in run.records("observe") if one["step"] == 0
    ]
    assert looks == [
        (backward, "end"),
        ("torch.optim.SGD.step", "begin"),
        ("torch.optim.SGD.step", "end"),
        (None, "step_end"),
    ]
    grads = [one for one in run.records("var") if one["step"] == 0 and "grad" in one["attributes"]]
    assert [one["names"][0] for one in grads].count("model.fc.weight") == 2


@pytest.mark.parametrize("tracker", ["subclass", "proxy", "sampler"])
def test_names_stay_when_torch_wraps_the_model(record, tracker):
    """A model that is compiled, or made parallel, is tracked again under its name as it was."""
    model = Net()
    with record(tracker=tracker) as run:
        traincheck.track(model, name="model")
        traincheck.track(torch.compile(model, backend="eager"), name="model")
        parallel = traincheck.track(nn.DataParallel(model), name="model")
        assert type(parallel) is nn.DataParallel
        traincheck.start_step()
        traincheck.start_step()

    told = {name for one in run.records("var") for name in one["names"]}
    assert {name for name in told if "fc" in name} == {
        "model.fc",
        "model.fc.weight",
        "model.fc.bias",
    }
    assert not any("module" in name or "_orig" in name for name in told)
    assert not [one for one in run.records("var") if one["event"] == "gone"]


def test_a_model_that_can_have_no_proxy_is_told(record, capsys):
    """Its parameters are followed all the same, and training goes on."""
    with pytest.warns(DeprecationWarning, match="torch.jit.script"):
        model = torch.jit.script(Net())
    with record(tracker="proxy") as run:
        run.recorder.faults.strict = False
        assert traincheck.track(model, name="model") is model
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)

    assert "model is scripted: it can have no proxy" in capsys.readouterr().err
    (gap,) = run.records("gap")
    assert gap["reason"] == "fault"
    assert changed(run, "model.fc.weight")


class Exact(type):
    def __instancecheck__(cls, one):
        return type(one) is cls


class Counting(nn.Module, metaclass=Exact):
    calls = 0

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def __getattr__(self, name):
        return super(type(self), self).__getattr__(name)

    def forward(self, x):
        type(self).calls += 1
        return self.fc(x) * (type(self).calls % 2)


@pytest.mark.parametrize("tracker", ["subclass", "proxy", "sampler"])
def test_a_model_that_relies_on_its_class_trains_as_it_does(record, tracker):
    """It counts on it, asks above it, and has a metaclass that goes by it; no class is added."""
    losses = []

    def run():
        Counting.calls = 0
        torch.manual_seed(0)
        model, other = Counting(), Counting()
        traincheck.track(model, name="model")
        for _ in range(3):
            traincheck.start_step()
            losses.append((model(torch.ones(2, 3)) - 3 * other(torch.ones(2, 3))).sum().item())
        return isinstance(model, Counting), Counting.calls, Counting.__subclasses__()

    plain = run()
    with record(tracker=tracker):
        recorded = run()

    assert plain == recorded == (True, 6, [])
    assert losses[:3] == losses[3:]


def test_a_proxy_notices_what_passes_through_the_methods_of_the_model(record):
    """An attribute or method that the model overrides says who reached its parts, all the same."""

    class Model(Net):
        def __getattr__(self, name):
            return super().__getattr__(name)

        def parameters(self, **options):
            return super().parameters(**options)

    model = Model()
    with record(tracker="proxy") as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        model.fc.weight.data.mul_(2)
        traincheck.start_step()
        for parameter in model.parameters():
            torch._foreach_add_([parameter.data], 1)
        traincheck.start_step()

    assert lines(run, changed(run, "model.fc.weight")) == [
        "model.fc.weight.data.mul_(2)",
        "for parameter in model.parameters():",
    ]


def test_a_program_may_register_its_subclasses(record):
    """No class hook, metaclass or attribute hook of the program hears of the proxy."""
    made = []

    class Registering(type):
        def __new__(cls, name, bases, namespace):
            made.append(name)
            return super().__new__(cls, name, bases, namespace)

    class Base(Net, metaclass=Registering):
        def __init_subclass__(cls):
            made.append(f"below {cls.__name__}")

    class Model(Base):
        type = "a word"  # where torch has a method

        def __setattr__(self, name, value):
            made.append(name)
            super().__setattr__(name, value)

    model = Model()
    before = list(made)
    with record(tracker="proxy"):
        traincheck.track(model, name="model")
        inside = type(model)
        assert model.type == "a word"

    assert made == before
    assert inside is Model


def test_a_parametrization_of_the_model_itself_is_taken_off_again(record):
    """Who gives the model another class, as parametrizations do, finds the one it expects."""
    model = nn.Linear(3, 3)
    with record(tracker="proxy"):
        traincheck.track(model, name="model")
        nn.utils.parametrizations.weight_norm(model)
        traincheck.track(model, name="model")
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)
        nn.utils.parametrize.remove_parametrizations(model, "weight")

    assert type(model) is nn.Linear


def test_everything_that_trackers_replace_is_put_back(record):
    """Also what belongs to torch, if nobody replaced it since."""
    before = torch.utils.swap_tensors
    methods = dict(vars(nn.Module))
    with record(tracker="proxy"):
        traincheck.track(Net(), name="model")
        assert torch.utils.swap_tensors is not before
        assert nn.Module.__getattr__ is not methods["__getattr__"]

    assert torch.utils.swap_tensors is before
    assert dict(vars(nn.Module)) == methods
    assert TrackedParameter not in ForkingPickler._extra_reducers


def test_what_the_program_puts_in_place_of_torchs_own_stays(record):
    """A constructor of parameters that stands on ours goes on, and is not taken away."""
    original = vars(nn.Parameter)["__new__"]
    try:
        with record(tracker="subclass"):
            ours = nn.Parameter.__new__

            def new(cls, *args, **kwargs):
                return ours(cls, *args, **kwargs)

            nn.Parameter.__new__ = new

        assert nn.Parameter.__new__ is new
        assert type(nn.Parameter(torch.ones(1))) is nn.Parameter
    finally:
        nn.Parameter.__new__ = original


def test_what_a_tracker_cannot_see_is_said():
    """The sampler can see no change made by a call; the others see all that is asked for."""
    variables = (VariablePlan(role="parameter", attributes=("data",)),)
    plan = Plan(id="p", functions=(), variables=variables, observe=("torch.Tensor.backward",))

    assert [*unseen_by("sampler", plan)] == ["changes made by torch.Tensor.backward"]
    assert [*unseen_by(None, plan)] == ["variables"]
    assert unseen_by("subclass", plan) == unseen_by("proxy", plan) == {}
    assert unseen_by(None, Plan(id="q", functions=(), variables=())) == {}
