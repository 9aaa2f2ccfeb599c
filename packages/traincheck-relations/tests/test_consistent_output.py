"""`ConsistentOutputRelation`: what losses return."""

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, batch
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.consistent_output import ConsistentOutputRelation
from traincheck_trace_schema.invariants import APIParam, ValueParam, VarTypeParam

RELATION = ConsistentOutputRelation()
LOSS = "torch.nn.functional.nll_loss"
GIVEN = {"input": batch((8, 4)), "target": batch((8,), "int64")}


def returns(attribute, value, function=LOSS):
    return (
        APIParam(api_full_name=function),
        VarTypeParam(var_type="torch.Tensor", attr_name=attribute, const_value=value),
    )


SINGLE = returns("dtype", {"dtype": "float32"})
FINITE = returns("finite", value=True)
MODEL = ValueParam(name="parameters", value=hashlib.sha256(b"model.weight").hexdigest()[:16])


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def test_the_precision_of_a_loss_is_proposed(runs):
    """Of what reduces batches to a number; not of a sum, a layer, or a count."""
    rank = runs.trace.rank()
    rank.variable("model.weight", requires_grad=True)
    add_call(rank, LOSS, GIVEN, result=batch((), finite=True))
    add_call(rank, "torch.sum", {"input": batch()}, result=batch(()))
    add_call(rank, "torch.nn.Linear.forward", {"input": batch()}, result=batch())
    add_call(rank, "count_equal", GIVEN, result=batch((), "int64"))

    assert runs.proposals() == {
        (*SINGLE, MODEL): f"Each call of {LOSS} returns tensors of dtype float32 or a more "
        "precise one",
        FINITE: f"Each call of {LOSS} returns what is finite",
    }


@settings(max_examples=25, deadline=None)
@given(steps=st.integers(1, 8), data=st.data())
def test_a_loss_of_another_precision_is_told_in_its_step(steps, data):
    """Whatever the number of steps."""
    wrong = data.draw(st.integers(0, steps - 1))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step in range(steps):
            rank.step(step)
            dtype = "bfloat16" if step == wrong else "float32"
            add_call(rank, LOSS, GIVEN, result=batch((), dtype))

        found = runs.examples(SINGLE)

    assert len(found) == steps
    assert broken(found) == [wrong]
    assert found[wrong].happened == (
        f"{LOSS} returned a tensor of dtype bfloat16, where float32 was expected"
    )


def test_all_tensors_that_are_returned_are_judged(runs):
    """Of a tuple, a list or a dict too: one that is wrong is enough."""
    rank = runs.trace.rank()
    good, bad = batch(), batch(dtype="float16")
    for result in ({"tuple": [good, [good]]}, [good, {"tuple": [bad]}], {"dict": [["x", bad]]}):
        add_call(rank, "f", result=result)

    assert verdicts(runs.examples(returns("dtype", {"dtype": "float32"}, "f"))) == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "dtype", "held"),
    [
        pytest.param("model.weight", "float64", [True], id="more precise"),
        pytest.param("model.weight", "bfloat16", [False], id="less precise"),
        pytest.param("model.bias", "bfloat16", [], id="another model"),
        pytest.param(None, "bfloat16", [], id="no model"),
    ],
)
def test_in_which_precision_it_trains_is_up_to_the_program(runs, name, dtype, held):
    """The claim is made of the model that it was learnt from, and less is broken, not more."""
    rank = runs.trace.rank()
    if name is not None:
        rank.variable(name, requires_grad=True)
    add_call(rank, LOSS, GIVEN, result=batch((), dtype))

    assert verdicts(runs.examples((*SINGLE, MODEL))) == held


def test_a_call_that_returns_no_tensor_is_no_occasion(runs):
    """Nor one of whose tensor the fact is not told."""
    rank = runs.trace.rank()
    add_call(rank, LOSS, GIVEN, result=None)
    add_call(rank, LOSS, GIVEN, result=1.5)
    add_call(rank, LOSS, GIVEN, result=batch(()))

    assert runs.examples(FINITE) == []
    assert verdicts(runs.examples(SINGLE)) == [True]


def test_shapes_of_older_files_are_compared(runs):
    """0.x wrote a shape as a tuple, the number of dimensions as a number."""
    rank = runs.trace.rank()
    add_call(rank, "f", result=batch((2, 3)))
    claims = [returns("shape", {"tuple": [2, 3]}, "f"), returns("ndim", 3, "f")]

    assert verdicts(runs.examples(*claims)) == [True, False]


def test_what_it_needs_is_recorded():
    """The result."""
    assert RELATION.requires(SINGLE).results == {LOSS}
    assert RELATION.requires((*SINGLE, MODEL)).variables == {"parameter": {"requires_grad"}}


@pytest.mark.parametrize(
    "params",
    [
        (APIParam(api_full_name=LOSS), APIParam(api_full_name=LOSS)),
        (*SINGLE, ValueParam(name="every", value=1)),
        (APIParam(api_full_name=LOSS), VarTypeParam(var_type="torch.Tensor", attr_name="dtype")),
    ],
)
def test_other_params_are_refused(params):
    """Without a constant there is nothing to compare with."""
    with pytest.raises(TypeError, match="ConsistentOutputRelation takes"):
        RELATION.monitor([params])
