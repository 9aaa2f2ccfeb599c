"""`VarUnchangedRelation`: an optimizer's step leaves frozen parameters as they are."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.variables.var_unchanged import VarUnchangedRelation
from traincheck_trace_schema.invariants import APIParam, VarTypeParam

RELATION = VarUnchangedRelation()
CLAIM = (
    APIParam(api_full_name=STEP),
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data", post_value="unchanged"),
)


def test_frozen_parameters_that_stay_are_proposed_and_hold(tmp_path):
    """Others are no occasion."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    model = runs.model()
    model.parameter("model.frozen", requires_grad=False)
    model.train(range(4))

    assert runs.proposals() == {
        CLAIM: f"Each call of {STEP} leaves the parameters that require no gradient as they are"
    }
    assert verdicts(runs.examples(CLAIM)) == [True] * 4


@settings(deadline=None)
@given(steps=st.integers(2, 8), data=st.data())
def test_a_frozen_parameter_that_moves_on_is_told(steps, data):
    """As by the momentum of what was frozen too late."""
    since = data.draw(st.integers(0, steps - 1))
    names = ("model.fc.weight", "model.bn.weight")
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        model = runs.model()
        model.parameter("model.frozen", requires_grad=False)
        for step in range(steps):
            model.train([step], gradients=(*names, "model.frozen") if step >= since else names)

        examples = runs.examples(CLAIM)

    assert broken(examples) == list(range(since, steps))
    assert examples[-1].happened == (
        "torch.optim.SGD.step changed model.frozen, which requires no gradient"
    )


def test_without_frozen_parameters_there_is_no_occasion(tmp_path):
    """And nothing is proposed."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    runs.model().train(range(4))

    assert runs.proposals() == {}
    assert runs.examples(CLAIM) == []


def test_a_change_between_steps_says_nothing(tmp_path):
    """A target network is copied to, though it requires no gradient."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    model = runs.model()
    model.parameter("model.frozen", requires_grad=False)
    model.train(range(3), moves=("model.frozen",))

    assert verdicts(runs.examples(CLAIM)) == [True] * 3


def test_other_params_are_refused():
    """There is one claim."""
    with pytest.raises(TypeError, match="VarUnchangedRelation takes"):
        RELATION.describe(CLAIM[:1])
