"""`ConsistentInputRelation`: what losses and communication are given."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, batch, module
from traincheck_relations.testing.models import Runs, broken
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.consistent_input import ConsistentInputRelation
from traincheck_trace_schema.invariants import (
    APIParam,
    ConditionGroup,
    Conjunction,
    InputOutputParam,
    Invariant,
    ValueParam,
)

RELATION = ConsistentInputRelation()
MSE = "torch.nn.functional.mse_loss"
ENTROPY = "torch.nn.functional.cross_entropy"
RECV = "torch.distributed.recv"
SHAPE, ROWS, GRAD = ("shape",), ("shape", 0), ("requires_grad",)


def argument(name, path, function=MSE):
    return InputOutputParam(
        name=name, type="torch.Tensor", additional_path=path, api_name=function, is_input=True
    )


def agree(path, function=MSE, names=("input", "target")):
    first, second = (argument(name, path, function) for name in names)
    return first, second


def always(name, path, *, value, function=MSE):
    return argument(name, path, function), ValueParam(name="value", value=value)


def fact(name, *, value, function=ENTROPY, of="input"):
    return always(of, ("facts", name), value=value, function=function)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def call_loss(rank, *, prediction=(8, 1), target=(8, 1), ctx=None, grad=True):
    arguments = {"input": batch(prediction, requires_grad=grad), "target": batch(target)}
    add_call(rank, MSE, arguments, result=batch((), requires_grad=grad), ctx=ctx)


def test_shapes_that_agree_are_proposed_of_a_loss(runs):
    """And who of both has a gradient; nothing of weights of classes, or of what is no loss."""
    rank = runs.trace.rank()
    rank.step(0)
    call_loss(rank)
    weighted = {"input": batch((8, 8)), "target": batch((8,), "int64"), "weight": batch((8,))}
    add_call(rank, ENTROPY, weighted, result=batch(()), ctx={"grad_mode": False})
    add_call(rank, "torch.add", {"input": batch(), "other": batch()}, result=batch())

    assert set(runs.proposals()) == {
        agree(SHAPE),
        agree(ROWS),
        always("input", GRAD, value=True),
        always("target", GRAD, value=False),
        agree(ROWS, ENTROPY),
    }


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(2, 9), min_size=1, max_size=8), data=st.data())
def test_a_target_of_another_shape_is_told_in_its_step(sizes, data):
    """Whatever the sizes of the batches, the last of which is smaller: (n, 1) is not (n,)."""
    wrong = data.draw(st.integers(0, len(sizes) - 1))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step, size in enumerate(sizes):
            rank.step(step)
            target = (size,) if step == wrong else (size, 1)
            call_loss(rank, prediction=(size, 1), target=target)

        found = runs.examples(agree(SHAPE))

    assert len(found) == len(sizes)
    assert broken(found) == [wrong]
    assert found[wrong].happened == (
        f"{MSE} was given input of shape [{sizes[wrong]}, 1] and target of shape [{sizes[wrong]}]"
    )


def test_what_is_not_told_is_no_occasion(runs):
    """A call without the argument, with a number for it, or that raised."""
    rank = runs.trace.rank()
    rank.step(0)
    add_call(rank, MSE, {"input": batch()})
    add_call(rank, MSE, {"input": batch(), "target": 0.5})
    add_call(rank, MSE)
    with rank.call(MSE, {"input": batch((2,)), "target": batch((3,))}, raises="ValueError"):
        pass

    claims = agree(SHAPE), always("input", ("finite",), value=True)

    assert runs.examples(*claims) == []


def test_a_loss_without_a_gradient_is_told_only_where_gradients_are_on(runs):
    """A detached prediction is wrong in training; in evaluation nothing requires a gradient."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        call_loss(rank, grad=step != 1)
        call_loss(rank, grad=False, ctx={"grad_mode": False})
        call_loss(rank, grad=False, ctx={"inference_mode": True})

    found = runs.examples(always("input", GRAD, value=True))

    assert [one.held for one in found] == [True, False, True]
    assert found[1].happened == f"{MSE} was given input that requires no gradient"


@pytest.mark.parametrize(
    ("calls", "held"),
    [
        ([("p", "")], [True]),
        ([("", "")], [False]),  # a loss without a gradient
        ([("", "t")], []),  # the other one is detached, as where codes learn
        ([("p", ""), ("", "")], [True]),  # a metric beside the loss
        ([("", ""), ("p", "")], [False, True]),
    ],
)
def test_either_argument_may_be_detached_and_what_is_computed_beside_a_loss(runs, calls, held):
    """In each call the prediction `p` and the target `t` require a gradient if they are named."""
    rank = runs.trace.rank()
    rank.step(0)
    for prediction, target in calls:
        given = {
            "input": batch(requires_grad=bool(prediction)),
            "target": batch(requires_grad=bool(target)),
        }
        add_call(rank, MSE, given, result=batch(()))

    found = runs.examples(always("input", GRAD, value=True))

    assert [one.held for one in found] == held


def test_a_target_may_require_a_gradient_if_the_prediction_does_not(runs):
    rank = runs.trace.rank()
    rank.step(0)
    for prediction in (False, True):
        given = {
            "input": batch(requires_grad=prediction),
            "target": batch(requires_grad=True),
        }
        add_call(rank, MSE, given, result=batch(()))

    found = runs.examples(always("target", GRAD, value=False))

    assert [one.held for one in found] == [False]


def test_probabilities_are_told_where_scores_are_expected(runs):
    """An extra softmax before the loss: rows that sum to one."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        scores = batch((8, 4), rows_sum_to_one=step == 2)
        arguments = {"input": scores, "target": batch((8,), "int64")}
        add_call(rank, ENTROPY, arguments, result=batch(()), ctx={"grad_mode": False})
    claim = fact("rows_sum_to_one", value=False)

    found = runs.examples(claim)

    assert set(runs.proposals()) == {claim, agree(ROWS, ENTROPY)}
    assert broken(found) == [2]
    assert found[2].happened == f"{ENTROPY} was given input whose rows sum to one"


NLL = "torch.nn.functional.nll_loss"


def test_what_is_no_logarithm_is_told_where_logarithms_are_expected(runs):
    """Scores, or a softmax over the batch; of losses that take scores it is not claimed."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        given = batch((8, 4), rows_sum_to_one=False, rows_are_log_shares=step < 2)
        arguments = {"input": given, "target": batch((8,), "int64")}
        for function in (NLL, ENTROPY):
            add_call(rank, function, arguments, result=batch(()), ctx={"grad_mode": False})
    claim = fact("rows_are_log_shares", value=True, function=NLL)

    found = runs.examples(claim)

    assert set(runs.proposals()) == {
        claim,
        *(fact("rows_sum_to_one", value=False, function=one) for one in (NLL, ENTROPY)),
        *(agree(ROWS, one) for one in (NLL, ENTROPY)),
    }
    assert broken(found) == [2]
    assert found[2].happened == (
        f"{NLL} was given input whose rows are no logarithms of shares of one"
    )


def test_facts_of_a_loss_that_may_take_anything_are_not_proposed(runs):
    """That rows don't sum to one may be so in this program only."""
    rank = runs.trace.rank()
    arguments = {"input": batch(in_unit_interval=False, rows_sum_to_one=False), "target": batch()}
    add_call(rank, MSE, arguments, result=batch(()), ctx={"grad_mode": False})

    assert set(runs.proposals()) == {agree(SHAPE), agree(ROWS)}


@pytest.mark.parametrize("function", [RECV, "net.Stage.forward"])
def test_rows_of_zeros_are_told_of_communication_and_of_models(runs, function):
    """What another rank sends is damaged from step 1 on; of other functions nothing is claimed."""
    rank = runs.trace.rank()
    rank.function("net.Stage.forward", "torch.nn.Module.forward")
    for step in range(2):
        rank.step(step)
        for name in (function, "other"):
            add_call(rank, name, {"tensor": batch(has_zero_row=step == 1)}, result=0)
    claim = fact("has_zero_row", value=False, function=function, of="tensor")

    assert set(runs.proposals()) == {claim}
    assert broken(runs.examples(claim)) == [1]


def invariant(params, condition="Unconditional"):
    conjunction = Conjunction(clauses=condition)
    return Invariant(
        id=str(params),
        text_description="",
        relation=RELATION.name,
        params=params,
        precondition={"pre_event": ConditionGroup(preconditions=(conjunction,))},
    )


def test_rows_follow_from_shapes():
    """Of the same two arguments under the same condition, and of no others."""
    shapes, rows = invariant(agree(SHAPE)), invariant(agree(ROWS))
    others = [
        invariant(agree(ROWS, ENTROPY)),
        invariant(agree(ROWS), condition=()),
        invariant(always("input", GRAD, value=True)),
    ]

    assert RELATION.without_implied([shapes, rows, *others]) == [shapes, *others]


def test_what_is_a_logarithm_is_known_to_be_no_share():
    """Of the same argument."""
    logarithms = invariant(fact("rows_are_log_shares", value=True, function=NLL))
    shares = [
        invariant(fact("rows_sum_to_one", value=False, function=function))
        for function in (NLL, ENTROPY)
    ]

    assert RELATION.without_implied([*shares, logarithms]) == [shares[1], logarithms]


def test_what_it_needs_is_recorded():
    """Both arguments; for gradients also whether they are on."""
    assert RELATION.requires(agree(SHAPE)).functions == {MSE: {"input", "target"}}
    assert RELATION.requires(agree(SHAPE)).contexts == frozenset()
    needs = RELATION.requires(always("input", GRAD, value=True))
    assert (needs.functions, needs.contexts) == (
        {MSE: {"input"}},
        {"grad_mode", "inference_mode"},
    )


@pytest.mark.parametrize(
    "params",
    [
        (APIParam(api_full_name=MSE), ValueParam(name="value", value=True)),
        (argument("input", SHAPE), argument("target", SHAPE, ENTROPY)),
        (argument("input", SHAPE), APIParam(api_full_name=MSE)),
    ],
)
def test_other_params_are_refused(params):
    """Two functions, or none."""
    with pytest.raises(TypeError, match="ConsistentInputRelation takes"):
        RELATION.monitor([params])


NET = "__main__.Net.forward"


def call_model(rank, *, shape=(8, 4), name="model", inner=None, **facts):
    """Call a model with a batch, and in it a part of it with what lies in [0, 1]."""
    for function in (NET, "__main__.Block.forward"):
        rank.function(function, "torch.nn.Module.forward")
    of = module("__main__.Net", name=name)
    with rank.call(NET, {"x": batch(shape, **facts)}, of=of):
        if inner is not None:
            part = module("__main__.Block", name=inner)
            inside = {"x": batch((8, 4), in_unit_interval=True)}
            add_call(rank, "__main__.Block.forward", inside, of=part)


@pytest.mark.parametrize("is_so", [True, False])
def test_in_which_range_a_model_is_given_its_data_is_proposed(runs, is_so):
    """Of the program's model; not of its parts, of one that is not tracked, or of few elements."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        call_model(rank, in_unit_interval=is_so if step < 2 else not is_so, inner="model.block")
        call_model(rank, name=None, in_unit_interval=not is_so)
        call_model(rank, shape=(2, 4), in_unit_interval=not is_so)
    claim = fact("in_unit_interval", value=is_so, function=NET, of="x")

    proposed = runs.proposals()
    found = runs.examples(claim)

    words = "that lies in [0, 1]" if is_so else "that does not lie in [0, 1]"
    assert proposed[claim] == f"Each call of {NET} is given x {words}"
    assert not any("Block" in said for said in proposed.values())
    assert {one.happened for one in found if not one.held and one.at.window.step == 2} == {
        f"{NET} was given x {'that does not lie in [0, 1]' if is_so else 'that lies in [0, 1]'}"
    }
