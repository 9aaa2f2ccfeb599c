"""`HeldByOptimizerRelation`: what is trained is held, with the right hyper-parameters."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.held_by_optimizer import HeldByOptimizerRelation
from traincheck_trace_schema.invariants import OccasionParam, VarTypeParam

RELATION = HeldByOptimizerRelation()
BEGIN = OccasionParam(function=STEP, phase="begin")
HELD = (
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="held_by", post_value="non_none"),
    BEGIN,
)
RATE = (
    VarTypeParam(
        var_type="torch.optim.Optimizer", attr_name="lr", post_value="non_zero", quantifier="some"
    ),
    BEGIN,
)


def decay(value):
    return (
        VarTypeParam(var_type="torch.nn.Parameter", attr_name="weight_decay", post_value=value),
        BEGIN,
    )


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def with_groups(runs):
    """Begin a run whose optimizer has a group without decay, for the vector."""
    model = runs.model()
    model.group("optimizer0.group1", lr=0.1, weight_decay=0)
    model.hold("model.bn.weight", ("optimizer0", 1))
    model.shapes["model.fc.weight"] = (2, 2)
    model.move("model.fc.weight")
    return model


def test_parameters_that_are_held_are_proposed_and_hold(runs):
    """Each parameter with a gradient is an occasion, at each step."""
    model = runs.model()
    model.train(range(5))

    assert runs.proposals() == {
        HELD: "Each parameter that has a gradient is held by an optimizer when one steps",
        RATE: "Each optimizer that steps has a group whose lr is not zero",
    }
    assert verdicts(runs.examples(HELD)) == [True] * 10


@settings(deadline=None)
@given(steps=st.integers(2, 8), data=st.data())
def test_a_parameter_that_no_optimizer_holds_any_more_is_told(steps, data):
    """By name, from the step on since which it is not held."""
    since = data.draw(st.integers(0, steps - 1))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        model = runs.model()
        model.train(range(since))
        model.hold("model.fc.weight")
        model.train(range(since, steps))

        examples = runs.examples(HELD)

    assert broken(examples) == list(range(since, steps))
    assert {one.at.variable for one in examples if not one.held} == {"model.fc.weight"}


def test_parameters_that_are_not_trained_say_nothing(runs):
    """Those that require no gradient, have none, or one that is zero."""
    model = runs.model()
    model.train([0])
    for name, state in {
        "model.a": {"requires_grad": False, "grad": tensor("g")},
        "model.b": {"grad": None},
        "model.c": {"grad": tensor("0", zero=True)},
    }.items():
        model.parameter(name, **state)
        model.hold(name)
    model.train([1])

    assert verdicts(runs.examples(HELD)) == [True] * 4


def test_a_vector_that_comes_into_the_group_with_decay_is_told(runs):
    """With the group; of matrices nothing is said, for embeddings may be left out."""
    model = with_groups(runs)
    model.train(range(3))
    model.hold("model.bn.weight", ("optimizer0", 0))
    model.train([3])

    assert {decay("zero"), decay("non_zero")} <= runs.proposals().keys()
    examples = runs.examples(decay("zero"))
    assert {one.at.variable for one in examples} == {"model.bn.weight"}
    assert broken(examples) == [3]
    (one,) = [example for example in examples if not example.held]
    assert one.happened == "model.bn.weight is in optimizer0.group0, whose weight_decay is 0.01"
    assert RELATION.describe(decay("zero")) == (
        "Where the groups of an optimizer differ in weight_decay, it is zero for each parameter "
        "of one dimension (biases, norms)"
    )


def test_an_optimizer_that_makes_no_distinction_says_nothing_of_decay(tmp_path):
    """That all parameters have one is no rule, nor is it a breach of one."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    model = runs.model()
    model.train(range(3))

    assert runs.proposals().keys() == {HELD, RATE}
    assert runs.examples(decay("zero")) == []


def test_a_learning_rate_of_zero_is_told_in_its_second_step(runs):
    """Once it may be zero: where a warm-up begins, or a decay ends."""
    model = runs.model()
    model.change("optimizer0.group0", lr=0)
    model.train([0])
    model.change("optimizer0.group0", lr=0.1)
    model.train([1, 2])
    model.change("optimizer0.group0", lr=1e-9)
    model.train([3, 4])

    examples = runs.examples(RATE)

    steps = [(one.at.window.step, one.held) for one in examples]
    assert steps == [(1, True), (2, True), (4, False)]


def test_a_group_that_is_frozen_by_its_rate_says_nothing(runs):
    """As long as another one of the optimizer learns."""
    model = runs.model()
    model.group("optimizer0.group1", lr=0, weight_decay=0.01)
    model.train(range(4))

    assert verdicts(runs.examples(RATE)) == [True] * 4


def test_an_unknown_rate_says_nothing(runs):
    """The trace may not tell it, or as a tensor."""
    model = runs.model()
    model.change("optimizer0.group0", lr={"tensor": {"shape": [], "dtype": "float32"}})
    model.train(range(3))

    assert RATE not in runs.proposals()
    assert runs.examples(RATE) == []


def test_other_params_are_refused():
    """An occasion that is not the begin of a step is none."""
    with pytest.raises(TypeError, match="the begin of"):
        RELATION.monitor([(HELD[0], OccasionParam(phase="step_end"))])
