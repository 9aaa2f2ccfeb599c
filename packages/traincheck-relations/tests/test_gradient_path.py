"""`GradientPathRelation`: gradients flow back through a module once in each step."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.testing.calls import add_call, batch, module
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, optimizer
from traincheck_relations.values.gradient_path import GradientPathRelation
from traincheck_trace_schema.invariants import APIParam, InputOutputParam, ValueParam

RELATION = GradientPathRelation()
NET, FORWARD = "net.Net.forward", "torch.nn.Module.forward"
PATH, CUT = True, False  # an input that requires a gradient, and one that does not


def path(name="model.d", *inputs):
    arguments = [
        InputOutputParam(
            name=one,
            type="torch.Tensor",
            additional_path=("requires_grad",),
            api_name=NET,
            is_input=True,
        )
        for one in inputs or ("x",)
    ]
    return *arguments, ValueParam(name="module", value=name)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def call(rank, *ways, name="model.d", ctx=None):
    """Call a module as often, with inputs that require a gradient or don't."""
    rank.function(NET, FORWARD)
    for way in ways:
        arguments = {"x": batch(requires_grad=way), "scale": 2}
        add_call(rank, NET, arguments, of=module("net.Net", name=name), ctx=ctx)


def test_a_module_that_is_called_in_both_ways_in_one_step_is_proposed(runs):
    """Not one that always is called in the same way, one without a name, or a part of it."""
    rank = runs.trace.rank()
    for step in range(2):
        rank.step(step)
        call(rank, CUT, CUT, PATH)
        call(rank, PATH, PATH, name="model.g")
        call(rank, CUT, PATH, name=None)
        call(rank, step == 0, name="model.other")
        with rank.call(NET, {}, of=module("net.Net", name="model.d")):
            call(rank, CUT, PATH, name="model.d.layer")

    assert runs.proposals() == {
        path(): "In each training step model.d is given, once or more, what requires a gradient"
    }


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.lists(st.booleans(), max_size=4), min_size=1, max_size=6))
def test_steps_without_a_path_are_told(steps):
    """Where the module is called twice or more; the last step may not be whole."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step, ways in enumerate(steps):
            rank.step(step)
            call(rank, *ways)

        found = runs.examples(path())

    judged = [(step, ways) for step, ways in enumerate(steps[:-1]) if len(ways) > 1]
    assert len(found) == len(judged)
    assert broken(found) == [step for step, ways in judged if not any(ways)]


def test_what_happened_counts_the_calls(runs):
    """And names the function."""
    rank = runs.trace.rank()
    for step in range(2):
        rank.step(step)
        call(rank, CUT, CUT, CUT)

    (found,) = runs.examples(path())

    assert found.happened == (
        f"none of the 3 calls of {NET} in the step was given what requires a gradient"
    )


def test_what_is_no_learning_says_nothing(runs):
    """Start-up, evaluation, disabled gradients, another module."""
    rank = runs.trace.rank()
    call(rank, CUT, CUT)
    rank.step(0)
    call(rank, CUT, CUT, ctx={"grad_mode": CUT})
    call(rank, CUT, CUT, name="model.other")
    rank.stage("evaluation")
    rank.eval_step(0)
    call(rank, CUT, CUT)
    rank.stage("training")
    rank.step(1)

    assert runs.examples(path()) == []


def test_evaluation_in_the_middle_of_a_step_does_not_end_it(runs):
    """What comes after it belongs to the same step."""
    rank = runs.trace.rank()
    rank.step(0)
    call(rank, CUT)
    rank.stage("evaluation")
    rank.eval_step(0)
    rank.stage("training")
    call(rank, PATH)
    rank.step(1)

    assert verdicts(runs.examples(path())) == [True]


def test_a_step_with_a_gap_is_no_occasion(runs):
    """The call that had a path may be among what was lost."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        call(rank, CUT, CUT)
        if step == 0:
            rank.gap("disk")
            rank.step(step)  # its next micro-batch
            call(rank, CUT, CUT)
    rank.step(3)

    assert broken(runs.examples(path())) == [1, 2]


def test_a_step_in_which_an_optimizer_sits_out_is_no_occasion(runs):
    """A critic that learns twice before the generator does."""
    rank = runs.trace.rank()
    rank.function("torch.optim.Adam.step", OPTIMIZER_STEP)
    for name in ("optimizer0", "optimizer1"):
        rank.variable(f"{name}.group0", role="optimizer", type_="torch.optim.Adam", lr=0.1)
    for step, steppers in enumerate(((0,), (0, 1), (1,), (0, 1))):
        rank.step(step)
        call(rank, CUT, CUT, step == 3)
        for number in steppers:
            add_call(rank, "torch.optim.Adam.step", of=optimizer(f"optimizer{number}"))
    rank.step(4)

    found = runs.examples(path())

    assert [(one.at.window.step, one.held) for one in found] == [(1, False), (3, True)]


def test_what_it_needs_is_recorded():
    """The arguments that are tensors, if gradients are enabled, and which optimizers step."""
    needs = RELATION.requires(path("model.d", "x", "y"))

    assert needs.functions == {NET: {"x", "y"}, OPTIMIZER_STEP: frozenset()}
    assert needs.variables == {"optimizer": {"lr"}}
    assert needs.contexts == {"grad_mode", "inference_mode"}


@pytest.mark.parametrize(
    "params",
    [path()[1:], (path()[0], ValueParam(name="module", value=3)), (APIParam(api_full_name=NET),)],
)
def test_other_params_are_refused(params):
    """It needs arguments, and the name of a module."""
    with pytest.raises(TypeError, match="GradientPathRelation takes"):
        RELATION.monitor([params])
