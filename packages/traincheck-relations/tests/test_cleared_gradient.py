"""`ClearedGradientRelation`: between two steps of an optimizer its gradients are cleared."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.cleared_gradient import ClearedGradientRelation
from traincheck_trace_schema.invariants import ValueParam

RELATION = ClearedGradientRelation()
NAMES = WEIGHT, NORM = "model.fc.weight", "model.bn.weight"
ZERO = tensor("zero", zero=True)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def train(model, step, *, cleared=NAMES, optimizer="optimizer0", names=NAMES):
    """Add a step in which these gradients are cleared before the backward pass."""
    model.rank.step(step)
    for name in cleared:
        model.change(name, grad=None if step % 2 else ZERO)
    for name in names:
        model.change(name, grad=tensor(f"{name} {step}"))
    with model.stepping(optimizer) as call:
        model.move(*names, during=call)
    model.look("step_end")


def claim(runs):
    (found,) = runs.proposals()
    return found


@settings(deadline=None)
@given(cleared=st.lists(st.booleans(), min_size=2, max_size=6))
def test_a_gradient_that_is_added_to_is_told_in_each_step_that_uses_it(tmp_path_factory, cleared):
    """To None or to zero; in the first step there is nothing to clear."""
    runs = Runs(RELATION, TraceBuilder(tmp_path_factory.mktemp("run")))
    model = runs.model()
    for step, is_cleared in enumerate(cleared):
        train(model, step, cleared=NAMES if is_cleared else NAMES[:1])

    found = runs.examples(claim(runs))

    assert broken(found) == [step for step, one in enumerate(cleared) if step and not one]
    assert {one.at.variable for one in found if not one.held} <= {NORM}
    assert len(found) == 2 * (len(cleared) - 1)


def test_clearing_one_model_clears_no_other(runs):
    """Each optimizer answers for what it holds."""
    model = runs.model()
    model.hold(NORM, ("optimizer1", 0))
    for step in range(4):
        which = step % 2
        names = NAMES[which : which + 1]
        train(model, step, cleared=(WEIGHT,), optimizer=f"optimizer{which}", names=names)

    found = runs.examples(claim(runs))

    assert [(one.at.window.step, one.at.variable, one.held) for one in found] == [
        (2, WEIGHT, True),
        (3, NORM, False),
    ]


def test_a_second_step_with_the_same_gradients_is_told(runs):
    """Nobody cleared them in between."""
    model = runs.model()
    for step in range(3):
        train(model, step)
    with model.stepping() as call:
        model.move(*NAMES, during=call)

    assert verdicts(runs.examples(claim(runs)))[-2:] == [False, False]


def test_after_a_gap_nothing_is_known_of_what_was_used(runs):
    """It may have been cleared where records are missing."""
    model = runs.model()
    for step in range(2):
        train(model, step)
    model.rank.gap("sampling")
    train(model, 9, cleared=())

    assert broken(runs.examples(claim(runs))) == []


def test_another_model_has_no_occasion(runs):
    """Some programs write new gradients over the old ones."""
    model = runs.model()
    for step in range(2):
        train(model, step)

    params = (*claim(runs)[:2], ValueParam(name="parameters", value="another"))

    assert runs.examples(params) == []


def test_other_params_are_refused():
    """With what they should be."""
    with pytest.raises(TypeError, match="takes VarTypeParam"):
        RELATION.describe((ValueParam(name="parameters", value="some"),))
