"""`LastingOptimizerRelation`: an optimizer goes on with what it trains."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.variables.lasting_optimizer import LastingOptimizerRelation
from traincheck_trace_schema.invariants import ValueParam

RELATION = LastingOptimizerRelation()
NAMES = ("model.fc.weight", "model.bn.weight")


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def train(model, step, optimizer, names=NAMES):
    """Add a step of an optimizer that holds these parameters now."""
    model.rank.step(step)
    for name in names:
        model.hold(name, (optimizer, 0))
    with model.stepping(optimizer) as call:
        model.move(*names, during=call)
    model.look("step_end")


def claim(runs):
    (found,) = runs.proposals()
    return found


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 3), min_size=2, max_size=5))
def test_who_takes_over_after_a_single_step_is_told(tmp_path_factory, lengths):
    """One that takes over after several steps begins another phase."""
    runs = Runs(RELATION, TraceBuilder(tmp_path_factory.mktemp("run")))
    model = runs.model()
    optimizers = [f"optimizer{at}" for at, length in enumerate(lengths) for _ in range(length)]
    for step, optimizer in enumerate(optimizers):
        train(model, step, optimizer)

    expected = [
        step
        for step, name in enumerate(optimizers)
        if step and name != optimizers[step - 1] and optimizers.count(optimizers[step - 1]) == 1
    ]
    if len(optimizers) > 1:
        found = runs.examples(claim(runs))
        assert broken(found) == expected
        assert len(found) == len(optimizers) - 1


def test_who_is_replaced_is_named(runs):
    """And by whom."""
    model = runs.model()
    for step in range(3):
        train(model, step, f"optimizer{step}")

    assert [one.happened for one in runs.examples(claim(runs))] == [
        "optimizer1 trains what optimizer0 trained before, in a single step",
        "optimizer2 trains what optimizer1 trained before, in a single step",
    ]


def test_optimizers_that_train_other_parameters_replace_nobody(runs):
    """As those of a generator and of a critic, each of which goes on."""
    model = runs.model()
    model.hold(NAMES[1], ("optimizer1", 0))
    for step in range(4):
        train(model, step, f"optimizer{step % 2}", NAMES[step % 2 : step % 2 + 1])

    assert verdicts(runs.examples(claim(runs))) == [True, True]


def test_after_a_gap_nobody_is_replaced(runs):
    """An optimizer may have stepped where records are missing."""
    model = runs.model()
    train(model, 0, "optimizer0")
    train(model, 1, "optimizer0")
    model.rank.gap("sampling")
    train(model, 8, "optimizer1")

    assert broken(runs.examples(claim(runs))) == []


def test_another_model_has_no_occasion(runs):
    """Some programs have an optimizer for each task."""
    model = runs.model()
    train(model, 0, "optimizer0")
    train(model, 1, "optimizer0")

    params = (*claim(runs)[:2], ValueParam(name="parameters", value="another"))

    assert runs.examples(params) == []


def test_other_params_are_refused():
    """With what they should be."""
    with pytest.raises(TypeError, match="takes VarTypeParam"):
        RELATION.describe((ValueParam(name="parameters", value="some"),))
