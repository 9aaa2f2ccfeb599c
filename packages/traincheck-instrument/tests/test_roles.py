"""Variables beside parameters: buffers, modules, optimizers, schedulers and scalers."""

import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck
from traincheck_trace_schema.plan import Plan, VariablePlan
from traincheck_trace_schema.plan_file import write_plan


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.head = nn.Linear(4, 2)
        self.register_buffer("average", torch.zeros(4), persistent=False)

    def forward(self, x):
        hidden = self.body(x)
        if self.training:
            self.average = 0.9 * self.average + 0.1 * hidden.detach().mean(0)
        return self.head(hidden)


@pytest.fixture(scope="module")
def run(record_at, tmp_path_factory):
    """Two steps of training with all that has a role, and a pass of evaluation."""
    torch.manual_seed(0)
    model = Net()
    with record_at(tmp_path_factory.mktemp("roles")) as recorded:
        traincheck.track(model, name="model")
        groups = [{"params": model.body.parameters(), "weight_decay": 0.1}]
        optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95))
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
        for step in range(2):
            traincheck.start_step()
            optimizer.zero_grad()
            scaler.scale(model(torch.randn(4, 3)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            if step == 0:
                optimizer.add_param_group({"params": model.head.parameters()})
        with traincheck.evaluation():
            model.eval()
            for _ in range(2):
                traincheck.start_eval_step()
                model(torch.randn(4, 3))
        model.train()
        traincheck.start_step()
    return recorded


def states(run, role, name):
    """Return the states of a variable one after the other, each as a whole."""
    whole, found = {}, []
    for one in run.variables(role):
        if name in one["names"]:
            whole = {**whole, **one["attributes"]}
            found.append(whole)
    return found


def test_buffers_are_observed_when_a_step_ends(run):
    """Non-persistent ones too; one that is assigned anew each step stays one variable."""
    names = {one["names"][0] for one in run.variables("buffer")}
    assert names == {
        "model.average",
        *(f"model.body.1.{name}" for name in ("running_mean", "running_var")),
        "model.body.1.num_batches_tracked",
    }
    assert len({one["id"] for one in run.variables("buffer")}) == 4
    steps = [
        one["step"] for one in run.changes("data", "buffer") if one["names"][0][6:] == "average"
    ]
    assert steps == [0, 1]
    looks = [one for one in run.records("observe") if one["roles"] == ["buffer"]]
    assert {(one["phase"], *one["attributes"]) for one in looks} == {("step_end", "data")}


def test_modules_tell_when_they_train(run):
    """Each with its type; what was switched for evaluation is told at its first step."""
    types = {one["names"][0]: one["type"] for one in run.variables("module")}
    assert set(types) == {
        "model",
        "model.body",
        "model.head",
        *(f"model.body.{n}" for n in range(3)),
    }
    assert types["model.body.1"] == "torch.nn.BatchNorm1d"
    assert [one["training"] for one in states(run, "module", "model.body.2")] == [True, False, True]
    switched = run.changes("training", "module")
    assert [one.get("eval_step") for one in switched[:6]] == [0] * 6


def test_each_group_of_an_optimizer_is_a_variable(run):
    """With its hyper-parameters, how many parameters it holds, and how far it has come."""
    first, *_, last = states(run, "optimizer", "optimizer0.group0")
    assert first["betas"] == {"tuple": [0.9, 0.95]}
    assert (first["lr"], first["weight_decay"], first["params"]) == (0.01, 0.1, 4)
    assert (first["state"], first["steps"]) == (0, None)
    assert (last["state"], last["steps"], last["lr"]) == (4, 2, 0.0025)
    (added, *_) = states(run, "optimizer", "optimizer0.group1")
    assert (added["params"], added["weight_decay"]) == (2, 0.01)


def test_the_call_that_changes_an_optimizer_is_named(run):
    """The step of the optimizer moves its state, that of the scheduler the learning rate."""
    functions = {one["id"]: one["function"] for one in run.records("call_begin")}

    def changing(attribute, role="optimizer"):
        return {functions.get(one.get("call")) for one in run.changes(attribute, role)}

    assert changing("steps") == {"torch.optim.AdamW.step"}
    assert changing("lr") == {"torch.optim.lr_scheduler.LRScheduler.step"}
    assert changing("last_lr", "scheduler") == {"torch.optim.lr_scheduler.LRScheduler.step"}


def test_schedulers_and_scalers_are_followed_from_their_first_call_on(run):
    """A scheduler when it is made, as it then steps; a scaler at the end of steps."""
    assert [one["last_lr"] for one in states(run, "scheduler", "scheduler0")] == [
        None,
        [0.01],
        [0.005],
        [0.0025, 0.005],
    ]
    told = states(run, "scaler", "scaler0")
    assert [(one["enabled"], one["scale"]) for one in told] == [(True, 16.0), (True, 32.0)]


def test_an_observation_covers_what_all_of_a_role_have(record):
    """Optimizers of several classes have other hyper-parameters; the trace claims no more."""
    model = nn.Linear(3, 2)
    with record() as run:
        traincheck.track(model, name="model")
        torch.optim.SGD([model.weight], lr=0.1).zero_grad()
        optimizers = [
            torch.optim.SGD([model.weight], lr=torch.tensor(0.5)),
            torch.optim.Adam([model.bias]),
        ]
        for _ in range(2):
            traincheck.start_step()
            for optimizer in optimizers:
                optimizer.step()
        traincheck.start_step()

    covered = {
        tuple(sorted(one["attributes"]))
        for one in run.records("observe")
        if one["roles"] == ["optimizer"] and one["step"] == 1
    }
    (names,) = covered
    assert {"lr", "params", "state", "steps", "weight_decay"} <= set(names)
    assert {"momentum", "betas"}.isdisjoint(names)
    assert states(run, "optimizer", "optimizer1.group0")[0]["lr"] == 0.5


def test_a_plan_chooses_roles_and_attributes(record, tmp_path):
    """What it does not name is neither told nor looked at."""
    plan = Plan(
        id="some",
        functions=(),
        variables=(
            VariablePlan(role="optimizer", attributes=("lr", "steps")),
            VariablePlan(role="parameter", attributes=("data",)),
        ),
        observe=("torch.optim.Optimizer.step",),
    )
    write_plan(tmp_path / "plan.json", plan)
    model = Net()
    with record(plan_path=tmp_path / "plan.json") as run:
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            traincheck.start_step()
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
        traincheck.start_step()

    told = {(one["role"], *one["attributes"]) for one in run.records("var") if one["attributes"]}
    assert told == {("parameter", "data"), ("optimizer", "lr", "steps")}
    looked = {(one["phase"], *one["roles"], *one["attributes"]) for one in run.records("observe")}
    assert looked == {
        (phase, *what)
        for phase in ("begin", "end", "step_end")
        for what in (("parameter", "data"), ("optimizer", "lr", "steps"))
    }


def test_objects_of_the_program_are_not_asked(record):
    """Not for attributes, nor to compare or to hash them."""

    class Hostile:
        def __getattr__(self, name):
            raise AssertionError(name)

        __eq__ = __hash__ = __len__ = __bool__ = __repr__ = __iter__ = __getattr__

    class Own(torch.optim.SGD):
        def __getattribute__(self, name):
            if name in ("state", "param_groups") and Own.is_made:
                raise AssertionError(name)
            return super().__getattribute__(name)

        is_made = False

        def step(self, closure=None):
            pass

    model = nn.Linear(3, 2)
    with record() as run:
        traincheck.track(model, name="model")
        optimizer = Own(model.parameters(), lr=0.1)
        optimizer.param_groups[0]["odd"] = Hostile()
        optimizer.param_groups[0]["pair"] = (1, Hostile())
        Own.is_made = True
        traincheck.start_step()
        optimizer.step()
        traincheck.start_step()

    (told, *_) = states(run, "optimizer", "optimizer0.group0")
    assert told["lr"] == 0.1
    assert told["odd"]["object"]["type"].endswith("Hostile")
    assert told["pair"] == {"object": {"type": "builtins.tuple"}}
