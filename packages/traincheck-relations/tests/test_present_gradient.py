"""`PresentGradientRelation`: what an optimizer holds has a gradient when it steps."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.present_gradient import PresentGradientRelation
from traincheck_trace_schema.invariants import OccasionParam, ValueParam, VarTypeParam

RELATION = PresentGradientRelation()
WEIGHT, NORM = "model.fc.weight", "model.bn.weight"
ZERO = tensor("zero", zero=True)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def claims(runs):
    """What is proposed of a run, the weaker claim first."""
    return sorted(runs.proposals(), key=repr)


def train(model, step, **gradients):
    """Add a step in which `fc` and `bn` have these gradients; of which nothing is said, new ones.

    The optimizer moves what has a gradient.
    """
    model.rank.step(step)
    for short in ("fc", "bn"):
        gradient = gradients.get(short, tensor(f"{short} {step}"))
        model.change(f"model.{short}.weight", grad=gradient)
    with model.stepping() as call:
        model.move(WEIGHT, NORM, during=call)
    model.look("step_end")


@settings(deadline=None)
@given(good=st.integers(1, 4), bad=st.integers(1, 3), gone=st.sampled_from([None, ZERO]))
def test_a_gradient_that_vanishes_is_told_in_each_step_without_it(good, bad, gone):
    """Of the parameter that has none, whether it is None or zero; of None both claims tell."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        model = runs.model()
        for step in range(good):
            train(model, step)
        for step in range(good, good + bad):
            train(model, step, bn=gone)
        non_none, non_zero = claims(runs)

        found = runs.examples(non_none), runs.examples(non_zero)

    expected = list(range(good, good + bad))
    assert [broken(each) for each in found] == [[] if gone is ZERO else expected, expected]
    assert {one.at.variable for one in found[1] if not one.held} == {NORM}
    assert all(len(each) == 2 * (good + bad) for each in found)


def test_what_was_seen_is_said_in_words(runs):
    """And of which model it is claimed."""
    model = runs.model()
    train(model, 0)

    (variable, occasion, of_model), _ = claims(runs)

    assert variable == VarTypeParam(
        var_type="torch.nn.Parameter", attr_name="grad", post_value="non_none"
    )
    assert occasion == OccasionParam(function=STEP, phase="begin")
    assert of_model.name == "parameters"
    assert set(runs.proposals().values()) == {
        "Each parameter that an optimizer trains has a gradient when it steps",
        "Each parameter that an optimizer trains has a gradient that is not zero when it steps",
    }


def test_a_parameter_that_is_frozen_in_mid_run_is_told_as_such(runs):
    """It had a gradient, so that it is trained."""
    model = runs.model()
    train(model, 0)
    model.change(NORM, requires_grad=False)
    train(model, 1, bn=None)
    _, non_zero = claims(runs)

    (told,) = [one.happened for one in runs.examples(non_zero) if not one.held]

    assert told == (
        f"{NORM} has no gradient when torch.optim.SGD.step begins (requires_grad is False)"
    )


def test_what_is_frozen_from_the_start_is_not_trained(runs):
    """Nor is what no optimizer holds."""
    model = runs.model()
    model.change(NORM, requires_grad=False)
    model.held_by = ()
    model.parameter("model.head.weight")
    train(model, 0, bn=None)
    train(model, 1, bn=None)

    assert [verdicts(runs.examples(claim)) for claim in claims(runs)] == [[True, True]] * 2


@pytest.mark.parametrize(
    "gradients",
    [
        pytest.param({"fc": None, "bn": None}, id="a closure computes them"),
        pytest.param({"fc": ZERO, "bn": ZERO}, id="the loss is zero"),
        pytest.param(
            {"fc": {"tensor": {**tensor("inf")["tensor"], "finite": False}}, "bn": None},
            id="a scaler skips the step",
        ),
    ],
)
def test_a_step_that_has_nothing_to_go_by_says_nothing(runs, gradients):
    """All other steps do."""
    model = runs.model()
    train(model, 0)
    train(model, 1, **gradients)
    train(model, 2)

    assert [verdicts(runs.examples(claim)) for claim in claims(runs)] == [[True] * 4] * 2


def test_another_model_has_no_occasion(runs):
    """Which parameters get a gradient is up to the program."""
    model = runs.model()
    train(model, 0)
    claim, _ = claims(runs)

    assert runs.examples((*claim[:2], ValueParam(name="parameters", value="another"))) == []


def test_after_a_gap_nothing_is_known_of_what_was_trained(runs):
    """What is frozen then may have been so for long."""
    model = runs.model()
    train(model, 0)
    model.change(NORM, requires_grad=False)
    model.rank.gap("sampling")
    train(model, 5, bn=None)

    assert [broken(runs.examples(claim)) for claim in claims(runs)] == [[], []]


def test_other_params_are_refused():
    """With what they should be."""
    with pytest.raises(TypeError, match="takes a VarTypeParam"):
        RELATION.describe((OccasionParam(function=STEP, phase="begin"),))
