"""What is told of the elements of a parameter when it is told first, and never again."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import traincheck_instrument as traincheck
from traincheck_instrument.content.facts import all_equal

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
    """With its first record; neither with a change, nor after a pause, nor of a buffer."""
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
