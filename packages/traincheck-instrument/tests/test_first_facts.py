"""What is told of the elements of a parameter until training begins, and never again."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import traincheck_instrument as traincheck
from traincheck_instrument.content.facts import all_equal
from traincheck_trace_schema.plan import FunctionPlan, Plan, VariablePlan
from traincheck_trace_schema.plan_file import write_plan

STEP = "torch.optim.Optimizer.step"
TRACKERS = ("subclass", "proxy", "sampler")


class Net(nn.Module):
    """A layer that begins with ones, one that is drawn, numbers that are neither, and a buffer."""

    def __init__(self):
        super().__init__()
        self.ones = nn.Parameter(torch.ones(3))
        self.drawn = nn.Parameter(torch.tensor([[0.5, -0.5], [0.25, 1.0]]))
        self.single = nn.Parameter(torch.ones(1))
        self.register_buffer("mask", torch.ones(3))

    def forward(self):
        return (self.ones.sum() * self.single + self.drawn.sum()).sum()


class Own(torch.Tensor):
    """A class of the program, which may answer as it likes."""


def facts_by_name(variables):
    return {one["names"][0]: one["attributes"]["data"]["tensor"].get("facts") for one in variables}


def facts_of_changes(run, name):
    changes = [one for one in run.changes("data") if one["names"] == [name]]
    return [one["attributes"]["data"]["tensor"].get("facts") for one in changes]


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        model().backward()
        optimizer.step()


@given(
    values=st.lists(
        st.sampled_from([0.0, -0.0, 1.0, 0.5, math.nan, math.inf, -math.inf]),
        min_size=2,
        max_size=4,
    ),
    ahead=st.sampled_from([0, 200]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
    is_turned=st.booleans(),
)
def test_all_are_equal_if_each_equals_the_first(values, ahead, dtype, is_turned):
    """Also where the first few are; zero has no sign, NaN equals nothing."""
    elements = [*[values[0]] * ahead, *values]
    tensor = torch.tensor([elements, elements], dtype=dtype, requires_grad=True)

    found = all_equal(tensor.t() if is_turned else tensor)

    assert found is all(one == elements[0] for one in elements)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(3, dtype=torch.int64),
        torch.ones(3, dtype=torch.bool),
        torch.ones(3, dtype=torch.complex64),
        torch.ones(3).to(torch.float8_e4m3fn),
        torch.ones(()),
        torch.ones(1, 1),
        torch.ones(0, 4),
    ],
)
def test_of_other_tensors_nothing_is_said(tensor):
    """Of one element it would be true of each; whole numbers are no weights."""
    assert all_equal(tensor) is None


@pytest.mark.parametrize("tracker", TRACKERS)
def test_what_a_parameter_begins_with_is_told_once(record, tracker):
    """With its first record; neither with what training changes, nor after a pause."""
    with record(tracker=tracker, interval=2) as run:
        model = traincheck.track(Net(), name="model")
        train(model, steps=3)

    told = [one for one in run.records("var") if "data" in one.get("attributes", ())]
    first = [one for one in told if one["event"] == "appeared"]
    later = [one for one in told if one["event"] != "appeared"]
    assert facts_by_name(first) == {
        "model.ones": {"all_equal": True},
        "model.drawn": {"all_equal": False},
        "model.single": None,
        "model.mask": None,
    }
    assert {one["event"] for one in later} == {"changed", "baseline"}
    assert set(facts_by_name(later).values()) == {None}


def loads(model):
    model.load_state_dict({**model.state_dict(), "drawn": torch.zeros(2, 2)})


def applies(model):
    model.apply(lambda module: nn.init.zeros_(module.drawn))


def writes_to_data(model):
    model.drawn.data.zero_()


@pytest.mark.parametrize("write", [loads, applies, writes_to_data])
@pytest.mark.parametrize("tracker", TRACKERS)
def test_what_is_written_before_training_is_told_with_the_change(record, tmp_path, tracker, write):
    """As it is when the first step of an optimizer begins; what comes after is trained."""
    plan = Plan(
        id="plan",
        functions=(FunctionPlan(name=STEP),),
        variables=(VariablePlan(role="parameter", attributes=("data",)),),
        observe_before=(STEP,),
    )
    write_plan(tmp_path / "plan.json", plan)
    with record(tracker=tracker, plan_path=tmp_path / "plan.json") as run:
        model = traincheck.track(Net(), name="model")
        write(model)
        train(model, steps=1)
        write(model)
        train(model, steps=1)

    begun, *trained = facts_of_changes(run, "model.drawn")
    (first, *_) = run.changes("data")
    begins = [one["seq"] for one in run.records("observe") if one["phase"] == "begin"]
    assert first["seq"] < begins[0]
    assert begun == {"all_equal": True}
    assert len(trained) > 1
    assert set(trained) == {None}


def test_what_is_written_while_gradients_are_collected_is_told(record):
    """In the first training step, with a scaler; of a buffer still nothing is."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with record() as run:
        traincheck.track(model, name="model")
        for _ in range(2):
            traincheck.start_step()
            scaler.scale(model()).backward()
            model.load_state_dict({name: one * 0 for name, one in model.state_dict().items()})
            scaler.step(optimizer)
            scaler.update()

    begun, *trained = facts_of_changes(run, "model.drawn")
    assert begun == {"all_equal": True}
    assert len(trained) > 1
    assert set(trained) == {None}
    assert run.changes("data", "buffer")
    assert set(facts_by_name(run.changes("data", "buffer")).values()) == {None}


def test_without_an_optimizer_the_first_step_ends_it(record):
    """A program may train by hand; to look at all elements in each step would cost too much."""
    model = Net()
    with record() as run:
        traincheck.track(model, name="model")
        for _ in range(4):
            traincheck.start_step()
            model.drawn.data.mul_(0.5)

    assert facts_of_changes(run, "model.drawn") == [{"all_equal": False}, None, None, None]


def test_of_a_gradient_that_is_there_already_nothing_is_said(record):
    """It is told with the parameter."""
    model = Net()
    model.ones.grad = torch.ones(3)
    with record() as run:
        traincheck.track(model, name="model")

    (attributes,) = (one["attributes"] for one in run.variables() if one["names"] == ["model.ones"])
    assert attributes["data"]["tensor"]["facts"] == {"all_equal": True}
    assert "facts" not in attributes["grad"]["tensor"]


def test_what_was_never_told_before_a_pause_ended_is_told_then(record):
    """Its first record is a baseline."""
    model = Net()
    with record(interval=2) as run:
        traincheck.start_step()
        traincheck.start_step()
        traincheck.track(model, name="model")
        traincheck.start_step()

    baselines = [one for one in run.variables() if one["event"] == "baseline"]
    assert facts_by_name(baselines)["model.ones"] == {"all_equal": True}


def test_a_parameter_that_takes_the_place_of_another_is_a_new_one(record):
    """As one that a checkpoint was loaded into, where it is assigned."""
    model = Net()
    with record() as run:
        traincheck.track(model, name="model")
        model.load_state_dict({**model.state_dict(), "ones": torch.arange(3.0)}, assign=True)
        train(model, steps=1)

    appeared = [one for one in run.variables() if one["names"] == ["model.ones"]]
    facts = [one["attributes"]["data"]["tensor"]["facts"] for one in appeared[:3:2]]
    assert [one["event"] for one in appeared[:3]] == ["appeared", "gone", "appeared"]
    assert facts == [{"all_equal": True}, {"all_equal": False}]


def freed(tensor):
    tensor.data.untyped_storage().resize_(0)
    return tensor


@pytest.mark.parametrize(
    "make",
    [
        lambda: freed(nn.Parameter(torch.ones(8))),
        lambda: nn.Parameter(torch.ones(8, device="meta")),
        lambda: nn.Parameter(torch.ones(8).as_subclass(Own)),
        lambda: nn.Parameter(torch.eye(3).to_sparse(), requires_grad=False),
    ],
    ids=["freed", "meta", "of a foreign class", "sparse"],
)
def test_what_can_not_be_read_tells_nothing(record, make):
    """To read what was freed would end the process."""
    model = nn.Module()
    model.weight = make()
    with record() as run:
        traincheck.track(model, name="model")

    assert facts_by_name(run.variables()) == {"model.weight": None}
