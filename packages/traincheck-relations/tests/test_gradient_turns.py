"""`APIContainRelation`: parts of a model that are used in turns get no gradient in between."""

import pytest

from traincheck_relations.containment.contain import APIContainRelation
from traincheck_relations.testing.models import Runs
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_trace_schema.invariants import APIParam, VarTypeParam

BACKWARD = "torch.Tensor.backward"
CLAIM = (
    APIParam(api_full_name=BACKWARD),
    VarTypeParam(
        var_type="torch.nn.Parameter",
        attr_name="grad",
        pre_value="none",
        post_value="non_zero",
        quantifier="each",
    ),
)


@pytest.fixture
def backward(tmp_path):
    """Return what is said of steps in each of which these heads, and the body, get gradients."""

    def run(*reached, held_by=("optimizer0",)):
        runs = Runs(APIContainRelation(), TraceBuilder(tmp_path))
        rank = runs.trace.rank()
        body = rank.variable("model.body", held_by=held_by, data=tensor("a"), grad=None)
        heads = [
            rank.variable(f"model.head{at}", held_by=held_by, data=tensor("a"), grad=None)
            for at in range(2)
        ]
        for step, which in enumerate(reached):
            rank.step(step)
            for one in (body, *heads):
                rank.change(one, grad=None)
            with rank.call(BACKWARD) as call:
                rank.observe("begin", call)
                for one in (body, *(heads[at] for at in which)):
                    rank.change(one, during=call, grad=tensor(f"g{step}"))
                rank.observe("end", call)
        found = runs.examples(CLAIM)
        return [(one.at.window.step, one.at.variable) for one in found if not one.held]

    return run


def test_heads_that_are_used_in_turns_say_nothing(backward):
    """Neither before the first turn of one, nor between two."""
    assert backward([0], [0], [0], [0], [1], *[[0]] * 6, [1]) == []


def test_a_head_that_never_gets_a_gradient_is_told_from_the_first_step_on(backward):
    """In the fifth it is clear that it is not another's turn."""
    assert backward(*[[0]] * 4) == []
    assert backward(*[[0]] * 6) == [(step, "model.head1") for step in range(6)]


def test_a_head_that_no_optimizer_holds_says_nothing(backward):
    """Nobody wants to train it."""
    assert backward(*[[0]] * 6, held_by=()) == []


def test_what_a_claim_says_depends_on_no_other_claim(tmp_path):
    """That another call once gave a gradient is no turn in this one."""
    other = (APIParam(api_full_name="net.warm_up"), CLAIM[1])
    runs = Runs(APIContainRelation(), TraceBuilder(tmp_path))
    rank = runs.trace.rank()
    head = rank.variable("model.head", held_by=("optimizer0",), data=tensor("a"), grad=None)
    for step in range(6):
        rank.step(step)
        for function, gradient in (("net.warm_up", tensor("g")), (BACKWARD, None)):
            with rank.call(function) as call:
                rank.observe("begin", call)
                rank.change(head, during=call, grad=gradient)
                rank.observe("end", call)
            rank.change(head, grad=None)

    alone = [one.held for one in runs.examples(CLAIM)]
    together = [one.held for one in runs.examples(CLAIM, other) if one.param == 0]

    assert alone == together == [False] * 6
