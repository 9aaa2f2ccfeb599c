"""The facts of occasions."""

import pytest

from traincheck_relations.conditions.properties import (
    call_properties,
    requirements_of,
    run_properties,
    variable_properties,
)
from traincheck_relations.replay import replayed
from traincheck_relations.testing.traces import TraceBuilder, optimizer, tensor
from traincheck_trace_schema.invariants import APIParam, InputOutputParam
from traincheck_trace_schema.reading import open_run


@pytest.fixture
def rank(tmp_path):
    return TraceBuilder(tmp_path).rank()


@pytest.fixture
def events(tmp_path, rank):
    def of_kind(kind):
        trace = TraceBuilder(tmp_path)
        trace._shards[0] = rank
        trace.write()
        return [
            (one, run_properties(one))
            for one in replayed(open_run([tmp_path]))
            if getattr(one, "kind", None) == kind
        ]

    return of_kind


def test_the_first_step_is_step_zero_and_what_comes_before(rank, events):
    """Set-up and step 0 count as first; step 1 does not."""
    for step in (-1, 0, 1):
        rank.step(step)

    firsts = [facts["run.first_step"] for _, facts in events("step")]

    assert firsts == [True, True, False]


def test_arguments_are_facts_where_they_can_be_compared(rank, events):
    """Primitives as they are, tensors by dtype and dimensions; floats and objects not at all."""
    arguments = {
        "p": 0.5,
        "training": True,
        "x": tensor(shape=(2, 3)),
        "module": {"object": {"type": "torch.nn.ReLU"}},
    }
    module = {"object": {"type": "torch.nn.Dropout", "attributes": {"training": False}}}
    with rank.call("f", arguments, of=module, ctx={"grad_mode": False}):
        pass

    ((event, _),) = events("call_begin")

    assert call_properties(event.call) == {
        "call.arg.training": True,
        "call.arg.x.dtype": "float32",
        "call.arg.x.ndim": 2,
        "call.arg.x.requires_grad": False,
        "call.module.training": False,
        "call.module.type": "torch.nn.Dropout",
        "ctx.grad_mode": False,
    }


def test_a_variable_is_held_by_the_caller_or_by_another(rank, events):
    """`held_by_caller` compares with the object whose method is called."""
    rank.variable("w", held_by=("mine",), data=tensor("a"), grad=tensor(zero=True), mark="x")
    for name in ("mine", "other"):
        with rank.call("step", of=optimizer(name)):
            pass

    calls = [event for event, _ in events("call_begin")]
    (state,) = calls[0].run.variables().values()
    mine, other = (variable_properties(state, event.call) for event in calls)

    assert (mine["var.held_by_caller"], other["var.held_by_caller"]) == (True, False)
    assert mine["var.grad"] == "zero"
    assert mine["var.mark"] == "x"
    assert "var.held_by_caller" not in variable_properties(state)


def test_requirements_say_what_makes_a_property_known():
    """An argument asks for itself, a gradient for gradients, a context for the context."""
    params = (APIParam(api_full_name="f"),)
    part = InputOutputParam(name="x", type="torch.Tensor", api_name="g", is_input=True)

    assert requirements_of("call.arg.p", params).functions == {"f": {"p"}}
    assert requirements_of("call.arg.p.requires_grad", (part,)).functions == {"g": {"p"}}
    assert requirements_of("var.grad", params).variables == {"parameter": {"grad"}}
    assert requirements_of("var.ndim", params).variables == {"parameter": {"data"}}
    assert requirements_of("ctx.autocast.dtype", params).contexts == {"autocast"}
