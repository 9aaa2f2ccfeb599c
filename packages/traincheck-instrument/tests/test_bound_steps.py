"""Steps of optimizers that were bound before the recording began: a scheduler does so."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

import traincheck_instrument as traincheck
from traincheck_trace_schema.plan import FunctionPlan, Plan
from traincheck_trace_schema.plan_file import write_plan

pytestmark = pytest.mark.torch

SGD = "torch.optim.SGD.step"


@pytest.fixture
def model():
    return nn.Linear(3, 2)


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, scheduler=None, *, step=None, clears=True):
    traincheck.track(model, name="model")
    for _ in range(3):
        traincheck.start_step()
        if clears:
            optimizer.zero_grad()
        model(torch.ones(4, 3)).sum().backward()
        (step or optimizer.step)()
        if scheduler is not None:
            scheduler.step()


def test_steps_of_an_optimizer_with_a_scheduler_are_recorded(record, model, optimizer):
    """Whether the scheduler was made before any recording or in an earlier one; each once."""
    scheduler = StepLR(optimizer, 1)
    held = vars(optimizer)["step"]
    for _ in range(2):
        with record() as run:
            train(model, optimizer, scheduler)

        calls = run.calls(SGD)
        assert [one["step"] for one in calls] == [0, 1, 2]
        assert len({one["self"]["object"]["name"] for one in calls}) == 1
        assert {one["call"] for one in run.changes("data")} == {one["id"] for one in calls}
        assert run.records("gap") == []
        assert vars(optimizer)["step"] is held
        run.shards[0].unlink()


def test_a_scheduler_made_in_an_earlier_recording_leaves_nothing_out(record, model):
    """It holds a wrapper of that recording, which does nothing any more."""
    for is_first in (True, False):
        with record() as run:
            if is_first:
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                scheduler = StepLR(optimizer, 1)
            train(model, optimizer, scheduler)

        assert [one["step"] for one in run.calls(SGD)] == [0, 1, 2]
        run.shards[0].unlink()


def test_a_scheduler_made_in_the_recording_counts_no_step_twice(record, model, optimizer):
    """The optimizer is older, and holds a step that leads to what is recorded."""
    with record() as run:
        train(model, optimizer, StepLR(optimizer, 1))

    assert [one["step"] for one in run.calls(SGD)] == [0, 1, 2]


def test_a_bound_method_that_the_optimizer_holds_is_followed(record, model, optimizer):
    """It stays a method, as those who wrap it in turn expect; the same comes back."""
    held = optimizer.step = optimizer.step
    with record() as run:
        train(model, optimizer)
        assert optimizer.step.__func__.__name__ == "step"

    assert [one["step"] for one in run.calls(SGD)] == [0, 1, 2]
    assert vars(optimizer)["step"] is held


def test_what_the_program_puts_in_its_place_stays(record, model, optimizer):
    """The end of the recording takes away what is ours alone."""
    StepLR(optimizer, 1)
    with record():
        train(model, optimizer)
        mine = optimizer.step = lambda: None

    assert vars(optimizer)["step"] is mine


def test_a_step_that_was_lost_is_told(record, model, optimizer):
    """Nothing was called before that would have shown the optimizer; later steps are recorded."""
    StepLR(optimizer, 1)
    with record() as run:
        train(model, optimizer, clears=False)

    assert [one["step"] for one in run.calls(SGD)] == [1, 2]
    assert [(one["step"], one["reason"]) for one in run.records("gap")] == [(0, "fault")]
    assert run.records("header")[-1]["recording"]["not_observed"] == {}


def test_a_step_that_can_not_be_followed_is_told_in_the_header(record, model, optimizer):
    """The program kept the method of an optimizer from before; that is told once."""
    before = optimizer.step
    with record() as run:
        train(model, optimizer, step=before)

    assert run.calls(SGD) == []
    assert SGD in run.records("header")[-1]["recording"]["not_observed"]
    assert [one["step"] for one in run.records("gap")] == [0]


def test_a_plan_without_steps_asks_for_none(record, model, optimizer, tmp_path):
    """No optimizer is touched, and nothing is told to be lost."""
    functions = (FunctionPlan(name="torch.nn.Linear.forward"),)
    plan = Plan(id="p", functions=functions, variables=())
    write_plan(tmp_path / "plan.json", plan)
    StepLR(optimizer, 1)
    held = vars(optimizer)["step"]
    with record(plan_path=tmp_path / "plan.json") as run:
        train(model, optimizer)
        assert vars(optimizer)["step"] is held

    assert run.records("gap") == []


def test_a_class_of_the_program_is_recorded_in_each_recording(record, model):
    """Its step holds a wrapper of the first recording when the second begins."""

    class Own(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self):
            for parameter in self.param_groups[0]["params"]:
                parameter.data.sub_(parameter.grad)

    for _ in range(2):
        with record() as run:
            train(model, Own(model.parameters()))

        functions = [one["function"] for one in run.records("call_begin")]
        assert len([name for name in functions if name.endswith("Own.step")]) == 3
        run.shards[0].unlink()


def test_no_optimizer_is_kept_alive(record, model):
    """What was put onto it refers to it weakly: it goes when the program lets it go."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    StepLR(optimizer, 1)
    with record():
        train(model, optimizer)
        kept = weakref.ref(optimizer)
        del optimizer
        assert kept() is None
