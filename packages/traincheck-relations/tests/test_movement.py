"""`ParameterMovementRelation`: no step of an optimizer blows a parameter up."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.movement import ParameterMovementRelation
from traincheck_trace_schema.invariants import APIParam, ValueParam, VarTypeParam

RELATION = ParameterMovementRelation()
CLAIM = (
    APIParam(api_full_name=STEP),
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"),
    ValueParam(name="factor", value=10),
)


def with_norm(norm):
    return {"tensor": {**tensor(str(norm))["tensor"], "statistics": {"norm": norm}}}


def train(runs, norms, first=1.0):
    """Add a step for each norm that a parameter has after it."""
    model = runs.model()
    model.change("model.fc.weight", data=with_norm(first))
    for step, norm in enumerate(norms):
        model.rank.step(step)
        with model.stepping() as call:
            model.change("model.fc.weight", during=call, data=with_norm(norm))
        model.look("step_end")


@given(steps=st.integers(4, 9), growth=st.floats(0.3, 9.0), data=st.data())
@settings(deadline=None)
def test_the_step_in_which_a_parameter_explodes_is_told(steps, growth, data):
    """Whichever it is, with both norms; ordinary growth is none."""
    since = data.draw(st.integers(3, steps - 1))
    norms = [growth ** (step + 1) * (50 if step >= since else 1) for step in range(steps)]
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        train(runs, norms)

        proposals = runs.proposals()
        examples = runs.examples(CLAIM)

    assert proposals == {
        CLAIM: f"The norm of each parameter grows by less than 10 times in a call of {STEP}"
    }
    assert broken(examples) == [since]
    assert len(examples) == steps - 3


def test_a_parameter_that_begins_at_zero_may_grow(tmp_path):
    """By any factor, in its first steps."""
    runs = Runs(RELATION, TraceBuilder(tmp_path))
    train(runs, (0.0, 0.0, 1e-6, 1e-3, 1.0, 2.0, 4.0), first=0.0)

    assert verdicts(runs.examples(CLAIM)) == [True]


def test_a_norm_that_is_not_finite_or_not_told_says_nothing(tmp_path):
    """That values are finite is another relation's claim."""
    runs = Runs(RELATION, TraceBuilder(tmp_path / "nan"))
    train(runs, (1.0, 1.0, 1.0, {"float": "nan"}, 1.0))
    digests = Runs(RELATION, TraceBuilder(tmp_path / "digests"))
    digests.model().train(range(6))

    assert runs.examples(CLAIM) == []
    assert digests.proposals() == {}
    assert digests.examples(CLAIM) == []


def test_other_params_are_refused():
    """Without a factor there is no claim."""
    with pytest.raises(TypeError, match="with a factor"):
        RELATION.describe(CLAIM[:2])
