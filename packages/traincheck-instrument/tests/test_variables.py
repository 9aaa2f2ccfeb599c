"""What a change of a variable is, by whatever route it comes, and which call is named for it."""

import contextlib
import ctypes
import functools
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument.content import contents


def make_gradients(model):
    functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()


def set_memory(tensor, byte):
    ctypes.memset(tensor.data_ptr(), byte, tensor.numel() * tensor.element_size())


def write_through_numpy(model):
    model.weight.detach().numpy()[0, 0] = 7.0


def write_without_grad(model):
    with torch.no_grad():
        model.weight.copy_(torch.full((2, 3), 3.0))


def shift_in_place(model):
    torch._foreach_add_([model.weight.data], 1.0)


def assign_data(model):
    model.weight.data = torch.arange(6.0).reshape(2, 3)


def turn_around(model):
    model.weight.data = model.weight.data.flip(0).t().contiguous().t()


def write_into_the_storage(model):
    model.weight.untyped_storage().copy_(torch.full((6,), 2.0).untyped_storage())


ROUTES = {
    ".data": lambda model: model.weight.data.mul_(2),
    "no_grad": write_without_grad,
    "foreach": shift_in_place,
    "assignment": assign_data,
    "other layout": turn_around,
    "numpy": write_through_numpy,
    "storage": write_into_the_storage,
    "memory": lambda model: set_memory(model.weight, 0x11),
    "one bit": lambda model: model.weight.data.view(torch.int32).bitwise_xor_(1),
}


@pytest.fixture(scope="module")
def changed_by_hand(record_at, tmp_path_factory):
    """A step for each route by which a program changes a weight past every call."""
    model = nn.Linear(3, 2)
    with record_at(tmp_path_factory.mktemp("routes")) as run:
        traincheck.track(model, name="model")
        for change in ROUTES.values():
            traincheck.start_step()
            change(model)
        traincheck.start_step()
    return run


@pytest.mark.parametrize("route", ROUTES)
def test_a_change_by_any_route_is_seen_when_the_step_ends(changed_by_hand, route):
    """Between this step's end and the look before, whatever the version counter says."""
    step = list(ROUTES).index(route)

    changes = [one for one in changed_by_hand.changes("data") if one["step"] == step]

    assert [one["names"] for one in changes] == [["model.weight"]]
    assert "call" not in changes[0]
    looks = {one["seq"]: one for one in changed_by_hand.records("observe")}
    later = looks[min(seq for seq in looks if seq > changes[0]["seq"])]
    assert (later["phase"], later["step"]) == ("step_end", step)


def states_of(run, name, attribute):
    """Return how an attribute of a variable stood, one after the other."""
    return [
        one["attributes"][attribute]
        for one in run.variables()
        if one["names"] == [name] and attribute in one["attributes"]
    ]


def shown(gradient):
    if gradient is None:
        return "none"
    tensor = gradient["tensor"]
    return "zero" if tensor["zero"] else "finite" if tensor["finite"] else "not finite"


def test_gradients_appear_change_are_cleared_and_set_to_none(record):
    """By calls or by hand: each state is told, and no other."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with record() as run:
        traincheck.track(model, name="model")
        for change in (
            functools.partial(make_gradients, model),
            functools.partial(make_gradients, model),  # adds up
            lambda: optimizer.zero_grad(set_to_none=False),
            functools.partial(make_gradients, model),
            lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.01),
            optimizer.zero_grad,
            lambda: setattr(model.weight, "grad", torch.ones(2, 3)),
            lambda: model.weight.grad.mul_(0),
            lambda: model.weight.grad.fill_(-0.0),
            lambda: model.weight.grad.data.fill_(torch.inf),
            lambda: set_memory(model.weight.grad, 0),
            lambda: setattr(model.weight, "grad", None),
        ):
            traincheck.start_step()
            change()
        traincheck.start_step()

    functions = {one["id"]: one["function"] for one in run.records("call_begin")}
    told = [
        (functions.get(one.get("call"), "").rpartition(".")[2], shown(one["attributes"]["grad"]))
        for one in run.changes("grad")
        if one["names"] == ["model.weight"]
    ]
    assert told == [
        ("backward", "finite"),
        ("backward", "finite"),
        ("zero_grad", "zero"),
        ("backward", "finite"),
        ("clip_grad_norm_", "finite"),
        ("zero_grad", "none"),
        ("", "finite"),
        ("", "zero"),
        ("", "zero"),  # -0.0 has other bits
        ("", "not finite"),
        ("", "zero"),
        ("", "none"),
    ]


def test_what_is_fetched_from_a_device_is_told_as_what_is_read_in_place(
    record_at, tmp_path, monkeypatch
):
    """The same changes, with the same digests; here all tensors are taken for far ones."""

    def record(name):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        optimizer = torch.optim.Adam(model.parameters())
        (tmp_path / name).mkdir()
        with record_at(tmp_path / name) as run:
            traincheck.track(model, name="model")
            for _ in range(3):
                traincheck.start_step()
                optimizer.zero_grad()
                make_gradients(model)
                optimizer.step()
            traincheck.start_step()
        return run.records("var")

    near = record("near")
    monkeypatch.setattr(contents, "_is_far", lambda _: True)

    assert record("far") == near


@pytest.mark.parametrize("kind", ["foreach", "fused", "closure"])
def test_the_step_of_an_optimizer_is_the_call_that_changes_data(record, kind):
    """However it is implemented: a fused kernel leaves the version counter as it was."""
    model = nn.Linear(3, 2)
    with record() as run:
        traincheck.track(model, name="model")
        if kind == "closure":
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
        else:
            optimizer = torch.optim.Adam(model.parameters(), **{kind: True})
        for _ in range(2):
            traincheck.start_step()

            def closure():
                optimizer.zero_grad()
                loss = functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 2))
                loss.backward()
                return loss

            optimizer.step(closure)
        traincheck.start_step()

    functions = {one["id"]: one["function"] for one in run.records("call_begin")}
    assert {functions[one["call"]].rpartition(".")[2] for one in run.changes("data")} == {"step"}
    assert {one["step"] for one in run.changes("data")} == {0, 1}


def test_loading_a_state_is_the_call_that_changes_parameters_and_buffers(record):
    """What it loads is told with its call."""
    model, other = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    other.weight.data.fill_(3)
    other.running_mean.fill_(2)
    with record() as run:
        traincheck.track(model, name="model")
        model.load_state_dict(other.state_dict())

    (load,) = run.calls("torch.nn.Module.load_state_dict")
    changed = {
        (one["names"][0], one["call"])
        for role in ("parameter", "buffer")
        for one in run.changes("data", role)
    }
    assert changed == {("model.weight", load["id"]), ("model.running_mean", load["id"])}


def test_freed_storage_is_not_read(record):
    """FSDP frees parameters, in full or in part; each look asks before it reads."""
    model = nn.Linear(256, 256, bias=False)
    storage = model.weight.untyped_storage()
    size = storage.size()
    with record() as run:
        traincheck.track(model, name="model")
        for left in (0, size // 2, size):
            traincheck.start_step()
            storage.resize_(left)
        traincheck.start_step()

    states = states_of(run, "model.weight", "data")
    assert ["digest" in one["tensor"] for one in states] == [True, False, True]


def test_parameters_keep_no_more_alive_than_the_program_does(record):
    """Nor do buffers, modules, gradients, optimizers, schedulers and scalers."""
    with record() as run:
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        traincheck.track(model, name="model")
        optimizer = torch.optim.Adam(model.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(2):
            traincheck.start_step()
            scaler.scale(model(torch.ones(4, 3)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
        traincheck.start_step()
        parts = [*model.parameters(), *model.buffers(), *model.modules()]
        gradients = [parameter.grad for parameter in model.parameters()]
        living = list(map(weakref.ref, [*parts, *gradients, optimizer, scheduler, scaler]))
        del model, optimizer, scheduler, scaler, parts, gradients
        gc.collect()
        alive = [one() for one in living if one() is not None]
        traincheck.start_step()

    assert alive == []
    gone = {one["id"] for one in run.records("var") if one["event"] == "gone"}
    assert gone == {one["id"] for one in run.records("var")}


def test_a_look_that_fails_keeps_nothing_alive(record, monkeypatch):
    """What it had read by then is let go."""
    model = nn.Linear(3, 2)
    with record() as run:
        run.recorder.faults.strict = False
        traincheck.track(model, name="model")
        model.weight.grad = torch.ones(2, 3)
        gradient = weakref.ref(model.weight.grad)
        variables = run.recorder._observer.variables
        monkeypatch.setattr(variables, "_objects", {"module": None})
        traincheck.start_step()
        model.weight.grad = None

        assert gradient() is None


def test_new_objects_at_old_addresses_are_new_variables(record):
    """A parameter that is replaced each step appears each step, also where its id comes again."""
    model = nn.Linear(3, 2, bias=False)
    with record() as run:
        traincheck.track(model, name="model")
        ids = []
        for _ in range(8):
            traincheck.start_step()
            data = torch.ones(2, 3)
            del model.weight
            model.weight = nn.Parameter(data)
            ids.append(id(model.weight))
        traincheck.start_step()

    assert len(set(ids)) < len(ids)
    events = [(one["event"], one["step"]) for one in run.variables() if one["step"] >= 0]
    assert events == [(event, step) for step in range(8) for event in ("gone", "appeared")]


def test_shared_and_nested_modules_have_all_their_names(record):
    """Also a module that holds itself, which is gone into once."""
    model = nn.Module()
    model.first = model.second = nn.Linear(3, 2, bias=False)
    model.first.loop = model
    with record() as run:
        traincheck.track(model, name="model")

    (weight,) = run.variables()
    assert weight["names"] == ["model.first.weight", "model.second.weight"]
    modules = {tuple(one["names"]) for one in run.variables("module")}
    assert ("model.first", "model.second") in modules


def test_code_of_the_program_is_not_run_to_find_variables(record):
    """Neither methods that list what a model has, nor attributes, nor comparisons."""

    class Hostile(nn.Linear):
        def __getattribute__(self, name):
            if getattr(Hostile, "is_made", False):
                raise AssertionError(name)
            return super().__getattribute__(name)

        def __iter__(self):
            raise AssertionError

        __len__ = __bool__ = __eq__ = __hash__ = __iter__

    model = nn.Sequential()
    model._modules["0"] = Hostile(3, 2)
    Hostile.is_made = True
    with record() as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        traincheck.start_step()

    assert len(run.variables()) == 2


def test_a_parameter_that_moves_to_another_group_is_told(record):
    """Also if the groups stay as long as they were."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD([{"params": [one]} for one in model.parameters()], lr=0.1)
    with record() as run:
        traincheck.track(model, name="model")
        optimizer.zero_grad()
        first, second = optimizer.param_groups
        traincheck.start_step()
        first["params"][0], second["params"][0] = second["params"][0], first["params"][0]
        traincheck.start_step()

    held = [(one["names"][0], one["held_by"][0]["group"]) for one in run.variables()[-2:]]
    assert held == [("model.weight", 1), ("model.bias", 0)]


def test_looking_leaves_random_numbers_and_graphs_alone(record):
    """A gradient that is part of a graph is looked at from outside of it."""
    model = nn.Linear(3, 2)
    with record():
        traincheck.track(model, name="model")
        traincheck.start_step()
        before = torch.get_rng_state()
        loss = model(torch.ones(4, 3)).pow(2).sum()
        with contextlib.suppress(UserWarning):
            gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        node = model.weight.grad.grad_fn
        traincheck.start_step()

        assert model.weight.grad.grad_fn is node
        assert torch.equal(torch.get_rng_state(), before)
        sum(one.sum() for one in gradients).backward()
        for parameter in model.parameters():
            parameter.grad = None
