"""From invariants to what must be recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_relations.api import Requirements
from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.planning import plan_for
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    Params,
)
from traincheck_trace_schema.plan import FunctionPlan, VariablePlan

if TYPE_CHECKING:
    import random


class Toy:
    name = "ToyRelation"
    group = "call"

    def requires(self, params: Params) -> Requirements:
        names = frozenset(param.api_full_name for param in params if isinstance(param, APIParam))
        return Requirements(
            functions=dict.fromkeys(names, frozenset(("self",))),
            results=frozenset(("f",)) & names,
            variables={"parameter": frozenset(("data",))},
            observe=frozenset(("g",)) & names,
        )


RELATIONS = {"ToyRelation": Toy()}


def invariant(function: str, *properties: str, relation: str = "ToyRelation") -> Invariant:
    clauses = tuple(Clause(type="exist", prop_name=name) for name in properties)
    group = ConditionGroup(preconditions=(Conjunction(clauses=clauses),)) if clauses else ALWAYS
    return Invariant(
        id=f"{function} {properties}",
        text_description="a claim",
        relation=relation,
        params=(APIParam(api_full_name=function),),
        precondition={"call": group},
    )


def test_a_plan_is_the_union_of_what_claims_and_preconditions_need() -> None:
    """Functions, arguments and attributes of all invariants are there, each once."""
    plan = plan_for(
        [invariant("f"), invariant("f", "call.arg.x"), invariant("g", "var.grad", "ctx.grad_mode")],
        RELATIONS,
    )

    assert plan.functions == (
        FunctionPlan(name="f", arguments=("self", "x"), result=True),
        FunctionPlan(name="g", arguments=("self",), result=False),
    )
    assert plan.variables == (VariablePlan(role="parameter", attributes=("data", "grad")),)
    assert plan.observe == ("g",)
    assert plan.contexts == ("grad_mode",)


def test_a_point_that_is_asked_for_whole_is_not_asked_for_by_halves() -> None:
    """Of a function whose changes one claim needs, others need not ask for begin or end."""

    class Halves(Toy):
        name = "HalvesRelation"

        def requires(self, params: Params) -> Requirements:
            del params
            both = frozenset(("f", "g"))
            return Requirements(observe_before=both, observe_after=both)

    claims = [invariant("g"), invariant("f", relation="HalvesRelation")]
    plan = plan_for(claims, RELATIONS | {"HalvesRelation": Halves()})

    assert (plan.observe, plan.observe_before, plan.observe_after) == (("g",), ("f",), ("f",))
    assert {function.name for function in plan.functions or ()} == {"f", "g"}


def test_variables_of_every_role_are_in_the_plan() -> None:
    """Each role with its own attributes, whatever relation asks for it."""

    class OfMany(Toy):
        name = "OfManyRelation"

        def requires(self, params: Params) -> Requirements:
            del params
            roles = {"optimizer": frozenset(("lr",)), "buffer": frozenset(("data",))}
            return Requirements(variables=roles, contexts=frozenset(("autocast",)))

    claims = [invariant("f"), invariant("f", relation="OfManyRelation")]
    plan = plan_for(claims, RELATIONS | {"OfManyRelation": OfMany()})

    assert plan.variables == (
        VariablePlan(role="buffer", attributes=("data",)),
        VariablePlan(role="optimizer", attributes=("lr",)),
        VariablePlan(role="parameter", attributes=("data",)),
    )
    assert plan.contexts == ("autocast",)


@given(st.randoms(use_true_random=False))
def test_the_order_of_invariants_does_not_matter(shuffle: random.Random) -> None:
    """The same invariants give the same plan with the same id."""
    invariants = [invariant("f", "call.arg.x"), invariant("g", "var.grad"), invariant("h")]
    plan = plan_for(invariants, RELATIONS)

    shuffle.shuffle(invariants)

    assert plan_for(invariants, RELATIONS) == plan


def test_another_content_is_another_plan() -> None:
    """The id tells plans apart."""
    assert plan_for([invariant("f")], RELATIONS).id != plan_for([invariant("g")], RELATIONS).id


def test_an_invariant_of_a_relation_that_is_not_installed_is_told() -> None:
    """What cannot be checked must not silently go unrecorded."""
    with pytest.raises(InvariantError, match=r"'Missing'.*not installed"):
        plan_for([invariant("f", relation="Missing")])


def test_what_can_be_checked_is_recorded_also_beside_what_can_not() -> None:
    """An old file may name relations that are not installed."""
    params = (APIParam(api_full_name="f"), APIParam(api_full_name="g"))
    known = attrs.evolve(
        invariant("f", relation="APIContainRelation"), params=params, precondition={}
    )

    plan = plan_for([invariant("h", relation="Missing"), known])

    assert [function.name for function in plan.functions or ()] == ["f", "g"]
