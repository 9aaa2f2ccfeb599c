"""Parts of models that others take the place of, and models that go, while a step lasts."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck

KEPT: list[nn.Parameter] = []


def load(model):
    model.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)


def assign(model):
    model.weight = nn.Parameter(model.weight.detach().clone())


def assign_and_keep(model):
    KEPT.append(model.weight)
    assign(model)


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("replace", [load, assign, assign_and_keep])
@pytest.mark.parametrize("tracker", ["subclass", "proxy", "sampler"])
def test_what_is_said_to_be_looked_at_is_what_the_model_has_now(record, tracker, replace):
    """A new parameter is followed at once, also before the step ends; the old one no longer."""
    model = nn.Linear(2, 2, bias=False)
    with record(tracker=tracker) as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        train(model)
        traincheck.start_step()
        replace(model)
        train(model)
        train(model)
    KEPT.clear()

    told = [one for one in run.records() if one["kind"] == "observe" or _is_parameter(one)]
    gone = next(one for one in told if one.get("event") == "gone")
    new = next(one for one in told if one.get("event") == "appeared" and one["step"] == 1)
    after = [one for one in told if one["seq"] > gone["seq"]]
    assert gone["names"] == new["names"] == ["model.weight"]
    assert {one["id"] for one in after if _is_parameter(one)} == {new["id"]}
    looks = [one for one in after if one["kind"] == "observe" and "parameter" in one["roles"]]
    assert all(new["seq"] < one["seq"] for one in looks)
    assert [one for one in after if one.get("event") == "changed" and "data" in one["attributes"]]


def test_a_variable_that_goes_between_two_calls_was_there_at_the_last_look(record):
    """The record that says that it is gone says since when it may be."""
    model = nn.Linear(2, 2, bias=False)
    with record() as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        train(model)
        assign(model)
        train(model)

    (gone,) = [one for one in run.variables() if one["event"] == "gone"]
    looks = [one["seq"] for one in run.records("observe") if "parameter" in one["roles"]]
    assert gone["between"][0] == max(seq for seq in looks if seq < gone["seq"])


def test_a_model_that_went_earlier_does_not_keep_the_last_step_from_its_end(record):
    """As the models of earlier folds; their names are forgotten."""
    with record() as run:
        for fold in range(3):
            model = nn.Linear(2, 2)
            traincheck.track(model, name=f"fold{fold}")
            traincheck.start_step()
            train(model)
            model.weight.data.mul_(2)
        traincheck.start_step()
        train(model)
        assert len(run.recorder._observer.variables._roots) == 1

    ends = [one["step"] for one in run.records("observe") if one["phase"] == "step_end"]
    assert max(ends) == 3


def test_a_module_that_gets_another_class_is_told_as_that(record):
    """The module of the old class is gone."""

    class Other(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(2, 2))
    with record() as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        model[0].__class__ = Other
        traincheck.start_step()

    told = [one for one in run.variables("module") if one["names"] == ["model.0"]]
    assert [(one["event"], one["type"].rsplit(".", 1)[-1]) for one in told] == [
        ("appeared", "Linear"),
        ("appeared", "Other"),
        ("gone", "Linear"),
    ]


def _is_parameter(one):
    return one["kind"] == "var" and one["role"] == "parameter"
