"""Orders and numbers that follow from others are left out, and nothing else."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.order.call_count import CallCountRelation
from traincheck_relations.order.function_cover import WITHIN_STEP, FunctionCoverRelation
from traincheck_relations.order.function_lead import FunctionLeadRelation
from traincheck_relations.testing.protocol import (
    BACKWARD,
    CLIP,
    SCHEDULER_STEP,
    STEP,
    UNSCALE,
    ZERO_GRAD,
)
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    ValueParam,
)

IN_ORDER = (BACKWARD, UNSCALE, CLIP, STEP, SCHEDULER_STEP)
AFTER_FIRST = ConditionGroup(
    preconditions=(
        Conjunction(
            clauses=(Clause(type="constant", prop_name="run.first_step", values=(False,)),)
        ),
    )
)


def invariant(relation, params, when=ALWAYS):
    return Invariant(
        id=repr((params, when)),
        text_description="",
        relation=relation.name,
        params=params,
        precondition={relation.group: when},
    )


def covers(first, second, *scope, when=ALWAYS):
    params = (APIParam(api_full_name=first), APIParam(api_full_name=second), *scope)
    return invariant(FunctionCoverRelation(), params, when)


def leads(first, second, when=ALWAYS):
    params = APIParam(api_full_name=first), APIParam(api_full_name=second)
    return invariant(FunctionLeadRelation(), params, when)


def pairs(invariants):
    return {tuple(param.api_full_name for param in one.params[:2]) for one in invariants}


def closure(found):
    found = set(found)
    while more := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= more
    return found


def test_of_a_line_the_steps_are_left():
    """What stands next to each other, and the core's own order."""
    known = [covers(a, b) for i, a in enumerate(IN_ORDER) for b in IN_ORDER[i + 1 :]]

    left = FunctionCoverRelation().without_implied(known)

    assert pairs(left) == {*pairwise(IN_ORDER), (BACKWARD, STEP)}


def test_of_functions_that_take_turns_a_circle_is_left():
    """In the order in which a step has them."""
    circle = (ZERO_GRAD, BACKWARD, STEP)

    left = FunctionLeadRelation().without_implied([leads(*one) for one in permutations(circle, 2)])

    assert pairs(left) == {(ZERO_GRAD, BACKWARD), (BACKWARD, STEP), (STEP, ZERO_GRAD)}


@given(st.sets(st.tuples(*[st.sampled_from(IN_ORDER)] * 2).filter(lambda pair: pair[0] != pair[1])))
def test_what_is_left_says_as_much(known):
    """And nothing of it says more."""
    left = pairs(FunctionLeadRelation().without_implied([leads(*one) for one in sorted(known)]))

    assert left <= known
    assert closure(left) == closure(known)


def test_an_order_that_holds_at_times_does_not_imply_one_that_always_holds():
    """But the other way round it does."""
    sometimes = [covers(BACKWARD, CLIP, when=AFTER_FIRST), covers(CLIP, STEP, when=AFTER_FIRST)]
    always = covers(UNSCALE, STEP)
    implied = covers(UNSCALE, SCHEDULER_STEP, when=AFTER_FIRST)
    known = [*sometimes, covers(STEP, SCHEDULER_STEP), always, implied]

    left = FunctionCoverRelation().without_implied([*known, covers(CLIP, SCHEDULER_STEP)])

    assert {one.id for one in known} - {one.id for one in left} == {implied.id}
    assert (CLIP, SCHEDULER_STEP) in pairs(left)


def test_an_order_since_the_last_call_does_not_imply_one_in_each_step():
    """They are claims of two kinds."""
    known = [
        covers(BACKWARD, CLIP),
        covers(CLIP, SCHEDULER_STEP),
        covers(BACKWARD, SCHEDULER_STEP, WITHIN_STEP),
    ]

    assert FunctionCoverRelation().without_implied(known) == known


@pytest.mark.parametrize(("when", "is_left"), [(ALWAYS, True), (AFTER_FIRST, False)])
def test_an_exact_number_implies_a_bound_where_it_holds(when, is_left):
    """Outside of that the bound says more."""
    relation = CallCountRelation()
    step = APIParam(api_full_name=STEP)
    exact = invariant(relation, (step, ValueParam(name="exactly", value=1)), AFTER_FIRST)
    bound = invariant(relation, (step, ValueParam(name="at_least", value=1)), when)
    other = invariant(relation, (step, APIParam(api_full_name=SCHEDULER_STEP)))

    left = relation.without_implied([exact, bound, other])

    assert left == ([exact, bound, other] if is_left else [exact, other])
