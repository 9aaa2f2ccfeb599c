"""`ConsistencyRelation` on small traces: across ranks, and across tied names."""

import pytest

from traincheck_relations.engine import Watch, propose
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.consistency import ConsistencyRelation
from traincheck_trace_schema.invariants import (
    OccasionParam,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)
from traincheck_trace_schema.reading import open_run

RELATION = ConsistencyRelation()


def across_ranks(attribute="data", function="torch.optim.Optimizer.step", phase="end"):
    variable = VarTypeParam(var_type="torch.nn.Parameter", attr_name=attribute)
    occasion = OccasionParam(function=function, phase=phase)
    return variable, variable, occasion, ScopeParam(scope="ranks")


def across_names(first, second):
    names = (VarNameParam(var_name=name, attr_name="data") for name in (first, second))
    return *names, OccasionParam(phase="step_end"), ScopeParam(scope="ties")


@pytest.fixture
def trace(tmp_path):
    return TraceBuilder(tmp_path, world_size=2)


def step_on_both(trace, contents, **variable):
    """Let both ranks make steps after which a weight has these contents."""
    for rank in (0, 1):
        shard = trace.rank(rank)
        shard.function("torch.optim.SGD.step", "torch.optim.Optimizer.step")
        weight = shard.variable("model.w", data=tensor("start", **variable), grad=None)
        for step, content in enumerate(contents):
            shard.step(step)
            with shard.call("torch.optim.SGD.step") as call:
                shard.observe("begin", call, "torch.optim.SGD.step")
                shard.change(weight, during=call, data=tensor(content[rank], **variable))
                shard.observe("end", call, "torch.optim.SGD.step")
            shard.observe("step_end")


def examples(trace, *params):
    trace.write()
    watch = Watch(open_run([trace.folder]), {RELATION.name: RELATION}, {RELATION.name: params})
    found = [example for _, example in watch]
    assert watch.faults == []
    return found


def test_a_rank_that_differs_is_named_with_both_values(trace):
    """Ranks agree at step 0 and differ from step 1 on: told at step 1, with evidence of both."""
    step_on_both(trace, ["aa", "bc", "dd"])

    found = examples(trace, across_ranks())

    assert [(one.at.window.step, one.held) for one in found] == [(0, True), (1, False), (2, True)]
    assert found[1].at.variable == "model.w"
    assert "on rank 1" in found[1].happened
    assert {ref.rank for ref in found[1].evidence} == {0, 1}


@pytest.mark.parametrize("covered", [{"attributes": ["grad"]}, {"roles": ["buffer"]}])
def test_what_was_not_looked_at_is_not_compared(trace, covered):
    """A look at other attributes, or at other variables, says nothing of the data."""
    for rank in (0, 1):
        shard = trace.rank(rank)
        shard.variable("model.w", data=tensor(f"a{rank}"), grad=None)
        shard.step(0)
        shard.observe("step_end", **covered)

    assert examples(trace, across_ranks(function=None, phase="step_end")) == []


def test_data_is_compared_when_a_step_ends_too(trace):
    """What no call of an optimizer did is seen at the step's end."""
    step_on_both(trace, ["aa", "bc"])

    found = examples(trace, across_ranks(function=None, phase="step_end"))

    assert [(one.at.window.step, one.held) for one in found] == [(0, True), (1, False)]


def test_a_tensor_parallel_variable_is_no_replica(trace):
    """What a framework marks as a part of a larger tensor is not compared."""
    for rank in (0, 1):
        shard = trace.rank(rank)
        shard.variable("model.w", data=tensor(str(rank)), grad=None, tensor_model_parallel=True)
        shard.step(0)
        shard.observe("step_end")

    assert examples(trace, across_ranks(function=None, phase="step_end")) == []


def test_each_group_of_a_kind_is_compared_by_itself(tmp_path):
    """Ranks 0 and 1 replicate one part of a model, 2 and 3 another: only rank 3 is wrong."""
    trace = TraceBuilder(tmp_path, world_size=4)
    contents = {0: "a", 1: "a", 2: "b", 3: "c"}
    for rank, content in contents.items():
        shard = trace.rank(rank)
        first = rank // 2 * 2
        shard.records[0] = {
            **shard.records[0],
            "groups": {"data_parallel": [first, first + 1]},
        }
        weight = shard.variable("model.w", data=tensor("start"), grad=None)
        shard.step(0)
        shard.change(weight, data=tensor(content))
        shard.observe("step_end")
    variable = VarTypeParam(var_type="torch.nn.Parameter", attr_name="data")
    scope = ScopeParam(scope="ranks", group="data_parallel")

    found = examples(trace, (variable, variable, OccasionParam(phase="step_end"), scope))

    assert [example.held for example in found] == [True, False]
    assert {ref.rank for ref in found[1].evidence} == {2, 3}


def test_an_occasion_that_a_rank_lacks_is_not_compared(trace):
    """A rank whose trace ends early breaks nothing."""
    step_on_both(trace, ["aa", "bc"])
    late = trace.rank(1)
    del late.records[next(i for i, one in enumerate(late.records) if one.get("step") == 1) :]

    found = examples(trace, across_ranks())

    assert [one.held for one in found] == [True]


def test_a_gap_blinds_a_rank_for_its_window(trace):
    """Occasions can't be counted where records are missing: before the gap or after it."""
    step_on_both(trace, ["ab"])
    blind = trace.rank(1)
    blind.records.insert(-1, {**blind.records[-1], "kind": "gap", "reason": "queue"})

    assert examples(trace, across_ranks()) == []


def test_the_value_that_is_compared_is_no_part_of_the_context(trace):
    """Otherwise a gradient that differs would be the reason that it may."""
    step_on_both(trace, ["aa"])

    (example,) = examples(trace, across_ranks())

    assert "var.grad" not in example.context
    assert "var.ndim" not in example.context
    assert example.context["var.name"] == "model.w"


def test_the_rank_that_differs_from_most_is_named(tmp_path):
    """Of three ranks the odd one out is at fault, also if it is the first."""
    trace = TraceBuilder(tmp_path, world_size=3)
    for rank, content in enumerate("abb"):
        shard = trace.rank(rank)
        shard.variable("model.w", data=tensor(content), grad=None)
        shard.step(0)
        shard.observe("step_end")

    (example,) = examples(trace, across_ranks(function=None, phase="step_end"))

    assert example.at.rank == 0
    assert example.happened == "model.w.data on rank 0 differs from that on ranks 1, 2"


def test_a_sharded_variable_is_no_replica(trace):
    """Parts of one tensor that lie on different ranks are not compared."""
    for rank in (0, 1):
        shard = trace.rank(rank)
        shard.function("torch.optim.SGD.step", "torch.optim.Optimizer.step")
        data = tensor(str(rank))
        data["tensor"]["placements"] = ["Shard(dim=0)"]
        shard.variable("model.w", data=data, grad=None)
        shard.step(0)
        with shard.call("torch.optim.SGD.step") as call:
            shard.observe("begin", call)
            shard.observe("end", call)

    assert examples(trace, across_ranks()) == []


def test_gradients_that_are_none_everywhere_are_nothing_to_compare(trace):
    """An example needs a value on some rank."""
    step_on_both(trace, ["aa"])

    assert examples(trace, across_ranks("grad", phase="begin")) == []


def test_proposals_come_from_what_changes_in_a_run_of_several_ranks(trace):
    """Data is compared after the call that changes it; one rank alone proposes nothing."""
    step_on_both(trace, ["aa", "bb"])
    trace.write()
    found = set(
        propose(open_run([trace.folder]), {RELATION.name: RELATION}).candidates[RELATION.name]
    )

    assert across_ranks() in found
    assert across_ranks("grad", phase="begin") in found
    assert across_ranks("grad", phase="end") not in found
    assert across_ranks(function=None, phase="step_end") in found


def test_a_broken_tie_is_told_at_the_step_at_which_the_names_differ(tmp_path):
    """Two names of one parameter become two parameters, which then go different ways."""
    trace = TraceBuilder(tmp_path)
    rank = trace.rank()
    shared = rank.variable("model.emb", "model.head", data=tensor("a"), grad=None)
    rank.step(0)
    rank.observe("step_end")
    rank.step(1)
    rank.records.append(
        {
            **rank.records[-3],
            "event": "changed",
            "names": ["model.emb"],
            "attributes": {},
            "step": 1,
        }
    )
    head = rank.variable("model.head", data=tensor("a"), grad=None)
    rank.observe("step_end")
    rank.step(2)
    rank.change(head, data=tensor("b"))
    rank.observe("step_end")

    found = examples(trace, across_names("model.emb", "model.head"))

    assert shared.id != head.id
    assert [(one.at.window.step, one.held) for one in found] == [(0, True), (1, True), (2, False)]
    assert "no longer one parameter" in found[-1].happened


def test_tied_names_are_proposed(tmp_path):
    """A parameter with two names proposes that they stay one."""
    trace = TraceBuilder(tmp_path)
    rank = trace.rank()
    rank.variable("model.emb", "model.head", data=tensor("a"), grad=None)
    rank.step(0)
    rank.observe("step_end")
    trace.write()

    found = propose(open_run([tmp_path]), {RELATION.name: RELATION}).candidates[RELATION.name]

    assert found == (across_names("model.emb", "model.head"),)


def test_descriptions_are_sentences():
    """Scope and occasion are told in words."""
    assert RELATION.describe(across_ranks()) == (
        "The data of a replicated parameter is equal on all ranks of the world "
        "after torch.optim.Optimizer.step"
    )
    assert "are tied" in RELATION.describe(across_names("a", "b"))
