"""Who holds a parameter, with which hyper-parameters; and which model it is."""

import pytest

from traincheck_relations.api import Event
from traincheck_relations.replay import replayed
from traincheck_relations.testing.models import MEAN, NORM, ModelRun
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.variables.holding import hyper_parameters, is_at_rest, resting
from traincheck_relations.variables.model_parts import ModelParts
from traincheck_trace_schema.reading import open_run


def follow(trace, follower=None):
    """Let a follower take all `var` events; return the last event."""
    trace.write()
    last = None
    for item in replayed(open_run([trace.folder])):
        if isinstance(item, Event):
            last = item
            if item.kind == "var" and follower is not None:
                follower.on_var(item)
    return last


def states(event):
    return {state.names[0]: state for state in event.run.variables().values()}


def test_the_groups_of_a_parameter_are_those_that_were_told_last(tmp_path):
    """By the names under which their hyper-parameters are told."""
    trace = TraceBuilder(tmp_path)
    model = ModelRun(trace.rank())
    model.group("optimizer0.group1", lr=0.5)
    model.hold("model.fc.weight", ("optimizer0", 1), ("optimizer2", 0))

    event = follow(trace)

    assert states(event)["model.fc.weight"].groups == ("optimizer0.group1", "optimizer2.group0")
    assert hyper_parameters(event.run)["optimizer0.group1"] == {"lr": 0.5}
    assert "optimizer2.group0" not in hyper_parameters(event.run)


@pytest.mark.parametrize(
    ("rate", "rests"), [(0, True), (-1e-8, True), (1e-6, False), (None, False), (False, False)]
)
def test_a_group_rests_if_its_rate_is_told_and_too_small(rate, rests):
    """A flag is no rate."""
    assert is_at_rest({} if rate is None else {"lr": rate}) is rests


def test_a_parameter_rests_if_all_groups_that_hold_it_do(tmp_path):
    """One that another optimizer can move does not; nor does one that none holds."""
    trace = TraceBuilder(tmp_path)
    model = ModelRun(trace.rank())
    model.group("optimizer0.group1", lr=0)
    model.hold("model.fc.weight", ("optimizer0", 0), ("optimizer0", 1))
    model.hold("model.bn.weight", ("optimizer0", 1))
    model.parameter("model.fc.bias")
    model.hold("model.fc.bias")

    event = follow(trace)

    assert resting(event.run) == {states(event)["model.bn.weight"].id}


def test_a_tensor_has_the_module_whose_name_its_own_begins_with(tmp_path):
    """As long as the module is there."""
    trace = TraceBuilder(tmp_path)
    ModelRun(trace.rank())
    parts = ModelParts()

    event = follow(trace, parts)

    owner = parts.owner(event, states(event)[MEAN])
    assert owner is not None
    assert owner.type == NORM
    assert {one.names[0] for one in parts.tensors(event, "model.bn")} == {
        MEAN,
        "model.bn.weight",
    }
    assert parts.module(event, "model.fc") is None


def test_the_layout_depends_on_the_names_of_parameters_alone(tmp_path):
    """Another seed or batch size is the same model; one parameter more is another."""
    layouts = []
    for number, more in enumerate((False, False, True)):
        trace = TraceBuilder(tmp_path / str(number))
        model = ModelRun(trace.rank())
        model.train(range(number))
        if more:
            model.parameter("model.fc.bias")
        layouts.append(follow(trace, ModelParts()).run.model())

    assert layouts[0] == layouts[1] != layouts[2]


def test_the_layout_follows_what_comes_and_goes(tmp_path):
    """An adapter that is put into the model makes another one of it, for as long as it is there."""
    trace = TraceBuilder(tmp_path)
    model = ModelRun(trace.rank())
    model.parameter("model.adapter")
    adapter = model.variables["model.adapter"]
    trace.rank()._add("var", event="gone", id=adapter.id, **adapter.fields)
    layouts = []

    class Asking:
        def on_var(self, event):
            layouts.append(event.run.model())

    follow(trace, Asking())

    *_, before, with_adapter, after = layouts
    assert before == after != with_adapter
