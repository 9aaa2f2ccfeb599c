"""`TrackedModuleRelation`: what a tracked model calls is a part of it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, module
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.values.tracked_module import TrackedModuleRelation
from traincheck_trace_schema.invariants import APIParam, ValueParam

RELATION = TrackedModuleRelation()
NET, LINEAR, FORWARD = "net.Net.forward", "torch.nn.Linear.forward", "torch.nn.Module.forward"
ACTIVATION = "torch.nn.PReLU.forward"
CLAIM = (APIParam(api_full_name=LINEAR),)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def call_model(rank, *layers, name="model"):
    """Let a model call layers with these names, inside a block; None is not registered."""
    for function in (NET, LINEAR):
        rank.function(function, FORWARD)
    with rank.call(NET, of=module("net.Net", name=name)), rank.call("block"):
        for layer in layers:
            add_call(rank, LINEAR, of=module("torch.nn.Linear", name=layer))


def test_layers_that_are_parts_are_proposed_by_their_type(runs):
    """Not the model itself, which nothing named is around, nor what is called beside it."""
    rank = runs.trace.rank()
    call_model(rank, "model.inp", "model.out")
    for name in ("model.weight", "model.out.weight", "other.weight"):
        rank.variable(name, data=tensor())
    rank.variable("model.act.state", role="buffer", data=tensor())
    rank.function(ACTIVATION, FORWARD)
    with rank.call(NET, of=module("net.Net", name="model")):
        add_call(rank, LINEAR, of=module("torch.nn.Linear", name="model.out"))
        add_call(rank, ACTIVATION, of=module("torch.nn.PReLU", name="model.act"))
    add_call(rank, ACTIVATION, of=module("torch.nn.PReLU", name="other"))

    assert runs.proposals() == {
        CLAIM: f"Each call of {LINEAR} inside a tracked model is of a part of it"
    }
    assert verdicts(runs.examples(CLAIM)) == [True, True, True]


@settings(max_examples=25, deadline=None)
@given(layers=st.lists(st.sampled_from(["model.a", None]), min_size=1, max_size=6))
def test_a_layer_that_is_not_registered_is_told_in_each_step(layers):
    """Wherever it stands among the others."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step in range(2):
            rank.step(step)
            call_model(rank, *layers)

        found = runs.examples(CLAIM)

    missing = layers.count(None)
    assert len(found) == 2 * len(layers)
    assert broken(found) == [0] * missing + [1] * missing


def test_a_model_that_is_not_tracked_says_nothing(runs):
    """Nobody knows what its parts are; nor where a layer is called by the program itself."""
    rank = runs.trace.rank()
    call_model(rank, None, "model.b", name=None)
    add_call(rank, LINEAR, of=module("torch.nn.Linear"))

    assert runs.examples(CLAIM) == []


def test_what_it_needs_is_recorded():
    """The calls around it, whatever the class of the model is called."""
    assert RELATION.requires(CLAIM).functions == {LINEAR: frozenset(), FORWARD: frozenset()}


def test_other_params_are_refused():
    """A value says nothing here."""
    with pytest.raises(TypeError, match="TrackedModuleRelation takes"):
        RELATION.monitor([(ValueParam(name="x", value=1),)])
