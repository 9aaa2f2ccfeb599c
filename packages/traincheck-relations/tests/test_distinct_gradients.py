"""`DistinctGradientRelation`: no two matrices have the same gradient when an optimizer steps."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.distinct_gradients import DistinctGradientRelation
from traincheck_trace_schema.invariants import OccasionParam, VarTypeParam

RELATION = DistinctGradientRelation()
CLAIM = (
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="grad"),
    OccasionParam(function=STEP, phase="begin"),
)
MATRICES = ("model.a.weight", "model.b.weight", "model.c.weight")


def train(model, step, gradients, *, shape=(4, 4)):
    """Add a training step in which parameters have gradients of these contents."""
    model.rank.step(step)
    for name, gradient in gradients.items():
        model.change(name, grad=tensor(gradient, shape=shape, zero=gradient == "zero"))
    with model.stepping() as call:
        model.move(*gradients, during=call)
    model.look("step_end")


def model_with_matrices(runs):
    model = runs.model()
    for name in MATRICES:
        model.parameter(name)
    return model


@settings(deadline=None)
@given(steps=st.integers(1, 6), data=st.data())
def test_a_gradient_that_two_parameters_have_is_told(steps, data):
    """In the very step, by both names."""
    bad = data.draw(st.integers(0, steps - 1))
    first, second, third = data.draw(st.permutations(MATRICES))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        model = model_with_matrices(runs)
        for step in range(steps):
            same = f"{first} {step}" if step == bad else f"{second} {step}"
            train(
                model,
                step,
                {first: f"{first} {step}", second: same, third: f"{third} {step}"},
            )

        examples = runs.examples(CLAIM)

    assert broken(examples) == [bad, bad]
    told = {example.happened for example in examples if not example.held}
    assert told == {
        f"{first} has the gradient of {second}",
        f"{second} has the gradient of {first}",
    }
    assert len(examples) == 3 * steps


def test_gradients_that_differ_are_proposed(tmp_path):
    """As one claim, in words."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    model = model_with_matrices(runs)
    for step in range(3):
        train(model, step, {name: f"{name} {step}" for name in MATRICES})

    assert runs.proposals() == {
        CLAIM: f"No two parameters that are matrices have the same gradient at {STEP}"
    }
    assert verdicts(runs.examples(CLAIM)) == [True] * 9


@pytest.mark.parametrize(
    ("gradients", "shape"),
    [
        (dict.fromkeys(MATRICES, "same"), (4,)),  # biases that are added up
        (dict.fromkeys(MATRICES, "zero"), (4, 4)),
        ({MATRICES[0]: "alone"}, (4, 4)),
    ],
)
def test_where_nothing_can_be_said(tmp_path, gradients, shape):
    """Vectors may agree, zeros do, and one gradient has no other to differ from."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    model = model_with_matrices(runs)
    for step in range(3):
        train(model, step, gradients, shape=shape)

    assert runs.examples(CLAIM) == []


def test_other_params_are_refused():
    """There is one claim."""
    with pytest.raises(TypeError, match="DistinctGradientRelation takes"):
        RELATION.describe(CLAIM[:1])
