"""`ConsistentInputOutputRelation`: results agree with what was given, or with the context."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.planning import plan_for
from traincheck_relations.testing.calls import add_call, batch
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.consistent_input_output import ConsistentInputOutputRelation
from traincheck_trace_schema.invariants import (
    APIParam,
    ConditionGroup,
    Conjunction,
    InputOutputParam,
    Invariant,
)

RELATION = ConsistentInputOutputRelation()
LINEAR, NORM = "torch.nn.Linear.forward", "torch.nn.LayerNorm.forward"
NET = "net.Net.forward"
HALF = {"autocast.dtype": {"dtype": "bfloat16"}}


def claim(function, name, path, result, index=None):
    return (
        InputOutputParam(
            name=name,
            index=index,
            type="torch.Tensor" if path else "torch.dtype",
            additional_path=path,
            api_name=function,
            is_input=True,
        ),
        APIParam(api_full_name=function),
        InputOutputParam(
            name="output_tensors",
            index=0,
            type="torch.Tensor",
            additional_path=result,
            api_name=function,
            is_input=False,
        ),
    )


CAST = claim(LINEAR, "ctx.autocast.dtype", None, ("dtype",))
ROWS = claim(NET, "x", ("shape", 0), ("shape", 0))


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def call_linear(rank, result, ctx=HALF):
    add_call(rank, LINEAR, {"input": batch()}, result=batch(dtype=result), ctx=ctx)


def test_what_autocast_casts_is_proposed(runs):
    """A layer that returns what it was given is no evidence, whatever its weights are."""
    rank = runs.trace.rank()
    call_linear(rank, "bfloat16")
    given = {"input": batch(dtype="bfloat16"), "weight": batch()}
    add_call(rank, NORM, given, result=batch(dtype="bfloat16"), ctx=HALF)
    add_call(rank, "f", {"input": batch()}, result=batch(), ctx=HALF)
    add_call(rank, "g", {"input": batch()}, result=batch(dtype="bfloat16"))

    assert runs.proposals() == {CAST: f"Each call of {LINEAR} returns the dtype of its autocast"}


@settings(max_examples=25, deadline=None)
@given(steps=st.integers(1, 8), data=st.data())
def test_a_layer_that_left_autocast_is_told_in_its_step(steps, data):
    """Whatever the number of steps; outside of autocast there is no occasion."""
    wrong = data.draw(st.integers(0, steps - 1))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step in range(steps):
            rank.step(step)
            call_linear(rank, "float32" if step == wrong else "bfloat16")
            call_linear(rank, "float32", ctx=None)

        found = runs.examples(CAST)

    assert len(found) == steps
    assert broken(found) == [wrong]
    assert found[wrong].happened == (
        f"{LINEAR} returned a tensor of dtype float32, but ctx.autocast.dtype has bfloat16"
    )


def test_rows_that_a_module_of_the_program_keeps_are_proposed(runs):
    """Of torch's own modules it is known anyway; the first tensor is the batch."""
    rank = runs.trace.rank()
    rank.function(NET, "torch.nn.Module.forward")
    rank.function(LINEAR, "torch.nn.Module.forward")
    add_call(rank, NET, {"scale": 2, "x": batch((8, 3)), "y": batch((8,))}, result=batch((8, 1)))
    add_call(rank, LINEAR, {"input": batch((8, 3))}, result=batch((8, 1)))
    proposals = runs.proposals()
    rank.step(1)
    add_call(rank, NET, {"scale": 2, "x": batch((8, 3))}, result=batch((24, 1)))

    assert set(proposals) == {ROWS}
    assert broken(runs.examples(ROWS)) == [1]


def test_what_is_not_told_is_no_occasion(runs):
    """A result or an argument that is no tensor, or has no such dimension."""
    rank = runs.trace.rank()
    add_call(rank, NET, {"x": batch((8, 3))}, result=None)
    add_call(rank, NET, {"x": batch(())}, result=batch((8,)))
    add_call(rank, NET, {}, result=batch((8,)))

    assert runs.examples(ROWS) == []


def test_tensors_of_older_files_are_counted(runs):
    """0.x names the n-th tensor among the arguments."""
    rank = runs.trace.rank()
    given = {"size": 3, "pair": {"tuple": [batch((2,)), batch((4,))]}, "last": batch((5,))}
    add_call(rank, "f", given, result=[batch((4, 4))])
    claims = [claim("f", "input_tensors", ("shape", 0), ("shape", 1), at) for at in range(4)]

    assert verdicts(runs.examples(*claims)) == [False, True, False]


def test_what_it_needs_is_recorded():
    """The context, or the argument; the result in any case."""
    assert RELATION.requires(CAST).contexts == {"autocast"}
    assert RELATION.requires(CAST).results == {LINEAR}
    assert RELATION.requires(ROWS).functions == {NET: {"x"}}


def test_all_arguments_are_recorded_where_tensors_are_counted():
    """Which is the second can't be told from some of them."""
    counted = claim("f", "input_tensors", ("shape", 0), ("shape", 0), 1)
    condition = ConditionGroup(preconditions=(Conjunction(clauses="Unconditional"),))
    invariant = Invariant(
        id="one",
        text_description="",
        relation=RELATION.name,
        params=counted,
        precondition={RELATION.group: condition},
    )

    (function,) = plan_for([invariant], {RELATION.name: RELATION}).functions

    assert (function.name, function.arguments, function.result) == ("f", "all", True)


def test_other_params_are_refused():
    """An output in the place of the input."""
    with pytest.raises(TypeError, match="ConsistentInputOutputRelation takes"):
        RELATION.monitor([tuple(reversed(CAST))])
