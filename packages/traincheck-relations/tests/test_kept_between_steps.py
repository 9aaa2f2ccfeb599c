"""`KeptBetweenStepsRelation`: only an optimizer's step changes the parameters that it holds."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.kept_between_steps import KeptBetweenStepsRelation
from traincheck_trace_schema.invariants import OccasionParam, ValueParam

RELATION = KeptBetweenStepsRelation()
WEIGHT, NORM = "model.fc.weight", "model.bn.weight"


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def train(model, step, *, before=(), after=()):
    """Add a step in which these parameters are written to before the optimizer's step, or after."""
    model.rank.step(step)
    model.move(*before)
    with model.stepping() as call:
        model.move(WEIGHT, NORM, during=call)
    model.move(*after)
    model.look("step_end")


def claim(runs):
    (found,) = runs.proposals()
    return found


@settings(deadline=None)
@given(where=st.lists(st.sampled_from(["", "before", "after"]), min_size=2, max_size=6))
def test_what_is_written_between_two_steps_is_told_in_its_step(where):
    """Once, whether it is seen where the training step ends or where the next one steps."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        model = runs.model()
        for step, each in enumerate(where):
            train(model, step, **({each: (NORM,)} if each else {}))
        found = runs.examples(claim(runs))

    # Before the first step nothing was left by an optimizer.
    expected = [at for at, each in enumerate(where) if each and (at or each == "after")]
    assert broken(found) == expected
    assert {one.at.variable for one in found if not one.held} <= {NORM}


def test_what_is_swapped_in_for_an_evaluation_and_back_is_kept(runs):
    """It is as it was when the step ends."""
    model = runs.model()
    left = tensor("left")
    train(model, 0)
    model.rank.step(1)
    with model.stepping() as call:
        model.change(NORM, during=call, data=left)
    model.rank.stage("evaluation")
    model.rank.eval_step(0)
    model.change(NORM, data=tensor("average"))
    model.rank.stage("training")
    model.change(NORM, data=left)
    model.look("step_end")
    train(model, 2)

    assert broken(runs.examples(claim(runs))) == []


def test_of_two_optimizers_each_leaves_what_it_holds(runs):
    """What the other one trains meanwhile is its own."""
    model = runs.model()
    model.hold(NORM, ("optimizer1", 0))
    for step in range(3):
        model.rank.step(step)
        for optimizer, name in (("optimizer0", WEIGHT), ("optimizer1", NORM)):
            with model.stepping(optimizer) as call:
                model.move(name, during=call)
        model.look("step_end")

    found = runs.examples(claim(runs))

    assert verdicts(found) == [True] * len(found)
    assert len(found) == 2 * 3 + 2 * 2  # where each step ends, and where the next two step


def test_what_no_optimizer_holds_says_nothing(runs):
    """An average is written to."""
    model = runs.model()
    model.held_by = ()
    model.parameter("average.weight")
    for step in range(3):
        train(model, step, after=("average.weight",))

    assert broken(runs.examples(claim(runs))) == []


@pytest.mark.parametrize("reason", ["sampling", "truncated"])
def test_nothing_is_compared_across_a_gap(runs, reason):
    """Steps that were not recorded have moved the parameters."""
    model = runs.model()
    train(model, 0)
    model.rank.gap(reason)
    model.move(WEIGHT, NORM)
    train(model, 5)
    train(model, 6)

    assert broken(runs.examples(claim(runs))) == []


def test_a_step_that_raised_leaves_nothing_to_compare(runs):
    """It may have moved some of the parameters, and nobody looked."""
    model = runs.model()
    train(model, 0)
    model.rank.step(1)
    with model.rank.call("torch.optim.SGD.step", of=None, raises="RuntimeError"):
        model.move(NORM)
    train(model, 2)

    assert broken(runs.examples(claim(runs))) == []


def test_another_model_has_no_occasion(runs):
    """Some programs clip their weights."""
    model = runs.model()
    train(model, 0)
    params = claim(runs)

    assert params[1] == OccasionParam(function=STEP, phase="begin")
    assert runs.examples((*params[:2], ValueParam(name="parameters", value="another"))) == []


def test_other_params_are_refused():
    """With what they should be."""
    with pytest.raises(TypeError, match="takes VarTypeParam"):
        RELATION.describe((OccasionParam(function=STEP, phase="begin"),))
