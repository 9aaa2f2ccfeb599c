"""`ConstantArgumentRelation`: how a loss or attention computes stays as it is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, batch
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.constant_argument import ConstantArgumentRelation

RELATION = ConstantArgumentRelation()
LOSS = "torch.nn.functional.cross_entropy"
ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
DEFAULTS = {"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0, "reduce": None}
WITHOUT_GRADIENTS = {"grad_mode": False}


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def model_of(runs, *layers):
    """Begin a run of a model that has these layers, and a loss with its defaults."""
    model = runs.model()
    for layer in layers:
        model.parameter(f"model.{layer}.weight")
    model.rank.function(LOSS, parameters=["input", "target", *DEFAULTS], defaults=DEFAULTS)
    model.rank.function(ATTENTION, defaults={"dropout_p": 0.0, "is_causal": False})
    model.rank.function("torch.nn.functional.relu", defaults={"inplace": False})
    model.rank.stage("training")
    return model


def call_loss(rank, *, ctx=None, **options):
    tensors = {"input": batch(requires_grad=True), "target": batch((8,), "int64")}
    add_call(rank, LOSS, {**tensors, **options}, result=batch(()), ctx=ctx)


def steps_of(runs, model, losses):
    """Train with these options of the loss, one step each."""
    for step, options in enumerate(losses):
        model.rank.step(step)
        call_loss(model.rank, **options)
    model.end()
    return runs


def claims(runs):
    return {sentence: params for params, sentence in runs.proposals().items()}


def test_what_decides_is_claimed_whether_it_is_given_or_left_out(runs):
    """Not what is tuned, nor what has no default that says something."""
    model = model_of(runs)
    for step in range(3):
        model.rank.step(step)
        call_loss(model.rank, reduction="sum", label_smoothing=0.1)
        add_call(model.rank, ATTENTION, {"is_causal": True, "dropout_p": 0.5})
        add_call(model.rank, "torch.nn.functional.relu", {"input": batch()})
    model.end()

    found = claims(runs)

    assert sorted(found) == [
        f"Each call of {LOSS} is given ignore_index -100",
        f"Each call of {LOSS} is given reduction 'sum'",
        f"Each call of {ATTENTION} is given is_causal True",
    ]
    for params in found.values():
        assert verdicts(runs.examples(params)) == [True] * 3


def test_what_varies_is_not_claimed(runs):
    model = model_of(runs)
    steps_of(runs, model, [{"reduction": "sum"}, {"reduction": "mean"}, {}])

    assert sorted(claims(runs)) == [f"Each call of {LOSS} is given ignore_index -100"]


@settings(deadline=None)
@given(steps=st.integers(2, 8), data=st.data())
def test_the_step_that_leaves_it_out_is_told(tmp_path_factory, steps, data):
    """With the default, and where it is given another value with that."""
    wrong = data.draw(st.integers(0, steps - 1))
    options = data.draw(st.sampled_from([{}, {"reduction": "mean"}]))
    reference = Runs(RELATION, TraceBuilder(tmp_path_factory.mktemp("reference")))
    steps_of(reference, model_of(reference), [{"reduction": "sum"}] * 3)
    claim = claims(reference)[f"Each call of {LOSS} is given reduction 'sum'"]

    other = Runs(RELATION, TraceBuilder(tmp_path_factory.mktemp("other")))
    losses = [{"reduction": "sum"}] * steps
    losses[wrong] = options
    steps_of(other, model_of(other), losses)

    (example,) = [one for one in other.examples(claim) if not one.held]
    assert example.at.window.step == wrong
    assert "'mean'" in example.happened
    assert ("its default" in example.happened) is (options == {})


def test_another_model_decides_for_itself(runs, tmp_path_factory):
    steps_of(runs, model_of(runs), [{"reduction": "sum"}] * 3)
    other = Runs(RELATION, TraceBuilder(tmp_path_factory.mktemp("other")))
    steps_of(other, model_of(other, "another"), [{}] * 3)

    for claim in claims(runs).values():
        assert other.examples(claim) == []


def test_calls_in_which_nothing_is_learnt_say_nothing(runs):
    """As in evaluation, without gradients, and before the first step."""
    model = model_of(runs)
    call_loss(model.rank, reduction="none")
    for step in range(3):
        model.rank.step(step)
        call_loss(model.rank, reduction="sum")
        call_loss(model.rank, reduction="none", ctx=WITHOUT_GRADIENTS)
        model.rank.stage("evaluation")
        model.rank.eval_step(0)
        call_loss(model.rank, reduction="none")
        model.rank.stage("training")
    model.end()

    claim = claims(runs)[f"Each call of {LOSS} is given reduction 'sum'"]

    assert verdicts(runs.examples(claim)) == [True] * 3
    assert broken(runs.examples(claim)) == []


def test_an_argument_that_was_not_recorded_says_nothing(runs, tmp_path_factory):
    """A plan that did not ask for it tells no default either."""
    steps_of(runs, model_of(runs), [{"reduction": "sum"}] * 3)
    other = Runs(RELATION, TraceBuilder(tmp_path_factory.mktemp("other")))
    model = other.model()
    model.rank.function(LOSS, parameters=["input", "target", *DEFAULTS])
    steps_of(other, model, [{}] * 3)

    for claim in claims(runs).values():
        assert other.examples(claim) == []
