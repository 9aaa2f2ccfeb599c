"""`ConstantStateRelation`: frozen parts stay frozen, trained models are in training mode."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.variables.constant_state import ConstantStateRelation
from traincheck_trace_schema.invariants import OccasionParam, ValueParam, VarNameParam, VarTypeParam

RELATION = ConstantStateRelation()
STEP_END = OccasionParam(phase="step_end")
TRAINS = (
    VarTypeParam(var_type="torch.nn.Module", attr_name="training", const_value=True),
    STEP_END,
)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def with_frozen_layers(runs):
    """Begin a run of a model with two frozen layers."""
    model = runs.model()
    for layer in (0, 1):
        for name in ("weight", "bias"):
            model.parameter(f"model.layers.{layer}.{name}", requires_grad=False)
    return model


def of_parts(proposals):
    """Return the claims about parts that are off."""
    return [params for params in proposals if params[0].const_value is False]


def test_frozen_layers_are_one_claim(runs):
    """By the shortest name that covers all of them and nothing else."""
    model = with_frozen_layers(runs)
    model.train(range(6))
    model.end()

    (claim,) = of_parts(runs.proposals())

    assert RELATION.describe(claim) == (
        "The parameters of model.layers require no gradient (they are frozen)"
    )
    assert verdicts(runs.examples(claim)) == [True] * 6


@settings(deadline=None)
@given(steps=st.integers(2, 8), data=st.data())
def test_the_step_in_which_a_layer_is_no_longer_frozen_is_told(steps, data):
    """With the parameter, from that step on."""
    since = data.draw(st.integers(0, steps - 1))
    with tempfile.TemporaryDirectory() as folder:
        good = Runs(RELATION, TraceBuilder(Path(folder) / "good"))
        model = with_frozen_layers(good)
        model.train(range(3))
        model.end()
        (claim,) = of_parts(good.proposals())
        bad = Runs(RELATION, TraceBuilder(Path(folder) / "bad"))
        model = with_frozen_layers(bad)
        for step in range(steps):
            model.rank.step(step)
            if step == since:
                model.change("model.layers.1.bias", requires_grad=True)
            with model.stepping():
                pass
            model.look("step_end")
        model.end()

        examples = bad.examples(claim)

    assert broken(examples) == list(range(since, steps))
    assert examples[-1].at.variable == "model.layers.1.bias"
    assert examples[-1].happened == (
        "requires_grad is True of model.layers.1.bias in a training step"
    )


def test_another_model_gives_no_occasion(tmp_path):
    """Though it has a part of that name; so a claim does not leave its program."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    model = with_frozen_layers(good)
    model.train(range(3))
    model.end()
    (claim,) = of_parts(good.proposals())
    other = Runs(RELATION, TraceBuilder(tmp_path / "other"))
    model = with_frozen_layers(other)
    model.parameter("model.adapter.weight")
    model.change("model.layers.0.bias", requires_grad=True)
    model.train(range(3))
    model.end()

    assert other.examples(claim) == []


def test_what_is_trained_beside_frozen_parts_is_a_claim_too(tmp_path):
    """Where it is frozen as well, nothing is trained any more."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    model = with_frozen_layers(good)
    model.train(range(3))
    model.end()
    claims = {
        params[0].var_name: params
        for params in good.proposals()
        if isinstance(params[0], VarNameParam) and params[0].const_value is True
    }
    bad = Runs(RELATION, TraceBuilder(tmp_path / "bad"))
    model = with_frozen_layers(bad)
    model.change("model.fc.weight", requires_grad=False)
    model.train(range(3))
    model.end()

    assert claims.keys() == {"model.fc", "model.bn"}
    assert RELATION.describe(claims["model.fc"]) == (
        "The parameters of model.fc require a gradient (they are not frozen)"
    )
    assert broken(bad.examples(claims["model.fc"])) == [0, 1, 2]
    assert broken(bad.examples(claims["model.bn"])) == []


def test_a_model_that_takes_the_place_of_another_keeps_its_name(runs):
    """As `fully_shard` does: the new one is told before the old one is gone."""
    model = runs.model()
    old = model.variables["model"]
    model.add("model", role="module", type_="Sharded", training=True)
    model.rank._add("var", event="gone", id=old.id, **old.fields)
    model.train(range(3))
    model.end()

    assert verdicts(runs.examples(TRAINS)) == [True] * 3


def test_a_norm_that_is_kept_in_evaluation_mode_is_claimed_by_name(tmp_path):
    """Where the model puts it back into training mode, the step is told."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    model = good.model()
    model.change("model.bn", training=False)
    model.train(range(3), moves=())
    model.end()
    (claim,) = of_parts(good.proposals())
    bad = Runs(RELATION, TraceBuilder(tmp_path / "bad"))
    model = bad.model()
    model.train(range(3))
    model.end()

    assert RELATION.describe(claim) == (
        "model.bn is not in training mode while the model is trained"
    )
    assert verdicts(good.examples(claim)) == [True] * 3
    assert broken(bad.examples(claim)) == [0, 1, 2]


def test_what_was_on_for_a_time_is_no_claim(runs):
    """As of layers that are unfrozen later."""
    model = with_frozen_layers(runs)
    model.train(range(3))
    for name in ("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"):
        model.change(f"model.{name}", requires_grad=True)
    model.train(range(3, 6))
    model.end()

    assert of_parts(runs.proposals()) == []


def test_a_trained_model_in_evaluation_mode_is_told(runs):
    """From the first step on that begins and ends in that mode."""
    model = runs.model()
    model.train(range(3))
    model.train([3, 4, 5], moves=(), model=False)
    model.end()

    assert TRAINS in runs.proposals()
    assert broken(runs.examples(TRAINS)) == [4, 5]


def test_evaluation_and_models_without_an_optimizer_say_nothing(tmp_path):
    """Modes belong to evaluation in the former; the latter only give advice."""
    evaluated = Runs(RELATION, TraceBuilder(tmp_path / "evaluated"))
    model = evaluated.model()
    model.change("model", training=False)
    model.train(range(3), moves=(), is_evaluated=True)
    model.end()
    advice = Runs(RELATION, TraceBuilder(tmp_path / "advice"))
    model = advice.model(held=False)
    model.change("model", training=False)
    model.train(range(3), moves=())
    model.end()

    assert evaluated.examples(TRAINS) == []
    assert advice.examples(TRAINS) == []


def test_what_was_not_looked_at_says_nothing(runs):
    """A step's end without flags does not tell how they are."""
    model = with_frozen_layers(runs)
    model.train([0])
    model.rank.step(1)
    with model.stepping():
        pass
    model.rank.observe("step_end", attributes=("data",))
    model.end()
    (claim,) = of_parts(runs.proposals())

    assert [one.at.window.step for one in runs.examples(claim)] == [0]
    assert [one.at.window.step for one in runs.examples(TRAINS)] == [0]


def test_requirements_name_flags_and_the_steps_of_optimizers():
    """No content of any tensor is needed."""
    claim = (
        VarNameParam(
            var_name="model.layers",
            var_type="torch.nn.Parameter",
            attr_name="requires_grad",
            const_value=False,
        ),
        STEP_END,
        ValueParam(name="parameters", value="x"),
    )

    assert RELATION.requires(claim).variables == {"parameter": {"requires_grad"}}
    assert RELATION.requires(TRAINS).variables == {
        "parameter": {"requires_grad"},
        "module": {"training"},
    }


def test_other_params_are_refused():
    """A flag that is to be True of a part is no claim of this relation."""
    part = VarNameParam(var_name="model", attr_name="training", const_value=True)
    with pytest.raises(TypeError, match="training mode"):
        RELATION.monitor([(part, STEP_END, ValueParam(name="parameters", value="x"))])


def test_what_is_frozen_ranks_below_what_every_training_does():
    """By name it is a setting; that a model trains in training mode is none."""
    named = (
        VarNameParam(
            var_name="model.fc",
            var_type="torch.nn.Parameter",
            attr_name="requires_grad",
            const_value=False,
        ),
        STEP_END,
        ValueParam(name="parameters", value="a digest"),
    )

    assert RELATION.likelihood(named) < 0.5 < RELATION.likelihood(TRAINS)
