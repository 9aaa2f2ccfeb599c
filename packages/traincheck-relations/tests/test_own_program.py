"""Claims that name what a program defines itself hold of the same model only."""

import pytest

from traincheck_relations.conditions.own_program import names_own, preconditions_of
from traincheck_relations.conditions.preconditions import compile_group, in_words
from traincheck_relations.conditions.properties import MODEL, requirements_of
from traincheck_relations.engine import Watch
from traincheck_relations.testing.calls import add_call, batch
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.consistent_output import ConsistentOutputRelation
from traincheck_trace_schema.invariants import APIParam, InputOutputParam, VarTypeParam
from traincheck_trace_schema.reading import open_run

OWN = (APIParam(api_full_name="__main__.Net.forward"),)
TORCH = (APIParam(api_full_name="torch.nn.Linear.forward"),)


def of(model, **facts):
    return {MODEL: model, **facts}


def applies(groups, context):
    return any(compile_group(group)(context) for group in groups)


@pytest.mark.parametrize(
    ("param", "is_own"),
    [
        (APIParam(api_full_name="__main__.train"), True),
        (APIParam(api_full_name="nets.Net.forward"), True),
        (InputOutputParam(name="x", type="torch.Tensor", api_name="nets.f", is_input=True), True),
        (VarTypeParam(var_type="__main__.Norm", attr_name="scale"), True),
        (VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"), False),
        (APIParam(api_full_name="torch.optim.Optimizer.step"), False),
    ],
)
def test_what_torch_does_not_define_is_the_programs_own(param, is_own):
    """A function, or a type; wherever in the claim it stands."""
    assert names_own((*TORCH, param)) is is_own


def test_a_claim_about_a_programs_function_applies_to_its_model_only():
    """Another script has another `Net`; where no model is known, nothing is said."""
    groups = preconditions_of(OWN, [of("a", **{"run.stage": "training"})], [])

    assert applies(groups, of("a"))
    assert not applies(groups, of("b"))
    assert not applies(groups, {})
    assert in_words(groups[0]) == "when it is the same model, by the names of its parameters"


def test_a_claim_about_torch_applies_to_all_models():
    """It does not depend on the model, even if that would separate."""
    positives, negatives = [of("a")], [of("b")]

    assert applies(preconditions_of(TORCH, positives, []), of("c"))
    assert preconditions_of(TORCH, positives, negatives) == []


def test_of_two_programs_with_the_same_name_the_one_in_which_it_always_held_is_kept():
    """They are two functions, which need not do the same."""
    groups = preconditions_of(OWN, [of("a"), of("b"), of("c")], [of("b")])

    assert [applies(groups, of(model)) for model in "abc"] == [True, False, True]


def test_other_conditions_are_kept():
    """All of them have to hold, in each alternative."""
    groups = preconditions_of(
        OWN, [of("a", **{"run.stage": "training"})], [of("a", **{"run.stage": "evaluation"})]
    )

    assert applies(groups, of("a", **{"run.stage": "training"}))
    assert not applies(groups, of("a", **{"run.stage": "evaluation"}))
    assert not applies(groups, of("b", **{"run.stage": "training"}))


def test_a_condition_on_a_type_of_the_program_names_it_too():
    """That `__main__.Net` does not do something says nothing about another `Net`."""
    groups = preconditions_of(
        TORCH,
        [of("a", **{"call.module.type": "__main__.Net"})],
        [of("a", **{"call.module.type": "torch.nn.Linear"})],
    )

    assert applies(groups, of("a", **{"call.module.type": "__main__.Net"}))
    assert not applies(groups, of("b", **{"call.module.type": "__main__.Net"}))


def test_where_no_model_is_told_it_applies_everywhere():
    """Nothing tells one program from another."""
    assert applies(preconditions_of(OWN, [{}], []), of("a"))


def test_an_occasion_knows_the_model_by_the_names_of_its_parameters(tmp_path):
    """Whatever their values are; a parameter that comes later makes another model."""
    relation = ConsistentOutputRelation()
    claim = (
        *TORCH,
        VarTypeParam(var_type="torch.Tensor", attr_name="dtype", const_value={"dtype": "float32"}),
    )
    models = []
    for number, names in enumerate((("a", "b"), ("b", "a"), ("a", "c"))):
        trace = TraceBuilder(tmp_path / str(number))
        rank = trace.rank()
        for name in ("", *names):
            if name:
                rank.variable(name, requires_grad=True)
            add_call(rank, "torch.nn.Linear.forward", result=batch())
        trace.write()
        watch = Watch(open_run([trace.folder]), {relation.name: relation}, {relation.name: [claim]})
        models.append([example.context.get(MODEL) for _, example in watch])

    assert [of_run[0] for of_run in models] == [None] * 3
    assert models[0][1] == models[2][1] != models[1][1]
    assert models[0][2] == models[1][2] != models[2][2]


def test_what_tells_the_model_is_recorded():
    """The names of parameters come with their state."""
    assert requirements_of(MODEL, OWN).variables == {"parameter": {"requires_grad"}}
