"""The solver of preconditions."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.conditions.preconditions import ALWAYS, holds, in_words
from traincheck_relations.conditions.separation import MAX_ALTERNATIVES, separate

if TYPE_CHECKING:
    import random

    from traincheck_trace_schema.invariants import ConditionGroup

SCALARS = st.sampled_from([True, False, 1, 0, 1.0, "a", "b", None])
PROPERTIES = ["var.held", "var.requires_grad", "var.name", "call.arg.x", "run.stage"]
CONTEXTS = st.lists(st.dictionaries(st.sampled_from(PROPERTIES), SCALARS), max_size=8)


def props(group: ConditionGroup) -> list[list[str]]:
    return [[clause.prop_name for clause in each.clauses] for each in group.preconditions]


def test_without_negatives_a_claim_always_applies() -> None:
    """Nothing needs to be excluded, so nothing is said about when."""
    assert separate([{"var.held": True}], []) == [ALWAYS]


def test_without_positives_there_is_nothing_to_describe() -> None:
    """A claim that never held has no precondition."""
    assert separate([], [{"var.held": True}]) == []


def test_a_context_that_is_both_separates_nothing() -> None:
    """Where the same facts went both ways, no precondition tells them apart."""
    both = {"var.held": True}

    assert separate([both, {"var.held": False}], [both]) == []


def test_facts_about_the_variable_come_first_and_each_stands_alone() -> None:
    """Three facts separate equally well: each becomes a precondition, the most telling first."""
    positive = {
        "run.stage": "training",
        "var.grad": "non_zero",
        "var.held": True,
        "var.held_by_caller": True,
        "var.requires_grad": True,
    }
    negative = {
        "run.stage": "init",
        "var.grad": "none",
        "var.held": False,
        "var.held_by_caller": False,
        "var.requires_grad": False,
    }

    groups = separate([positive], [negative])

    assert [props(group) for group in groups] == [
        [["var.held_by_caller"]],
        [["var.requires_grad"]],
        [["var.grad"]],
    ]


def test_the_smallest_conjunction_is_taken() -> None:
    """Two facts are named only where no single one excludes all negatives."""
    positives = [{"var.held": True, "var.grad": "non_zero"}]
    negatives = [
        {"var.held": True, "var.grad": "none"},
        {"var.held": False, "var.grad": "non_zero"},
    ]

    (group,) = separate(positives, negatives)

    assert props(group) == [["var.held", "var.grad"]]
    assert in_words(group) == (
        "when the variable is held by an optimizer and the variable has a gradient that is not zero"
    )


def test_three_facts_are_found() -> None:
    """A conjunction may need three clauses."""
    names = ["call.arg.a", "call.arg.b", "call.arg.c"]
    every = [dict(zip(names, values, strict=True)) for values in product([0, 1], repeat=3)]

    (group,) = separate(every[-1:], every[:-1])

    assert props(group) == [names]


def test_parts_that_share_no_conjunction_become_a_disjunction() -> None:
    """The positives are split where no single description fits all of them."""
    positives = [
        {"run.stage": "training", "call.arg.x": 1},
        {"run.stage": "testing", "call.arg.x": 2},
    ]
    negatives = [
        {"run.stage": "training", "call.arg.x": 2},
        {"run.stage": "testing", "call.arg.x": 1},
    ]

    (group,) = separate(positives, negatives)

    assert not group.inverted
    assert sorted(props(group)) == [["call.arg.x", "run.stage"]] * 2


def test_what_only_the_negatives_have_in_common_is_turned_round() -> None:
    """Where the positives have nothing in common, the negatives may."""
    stages = [f"stage {number}" for number in range(20)]
    positives = [{"run.stage": stage} for stage in stages]
    negatives = [{"run.stage": "testing"}, {"run.stage": "init"}]

    (group,) = separate(positives, negatives)

    assert group.inverted
    assert in_words(group) == "except when the stage of the run is init or testing"


def test_incidental_facts_are_not_turned_round() -> None:
    """That an argument had some value where a claim did not hold is no rule."""
    positives = [{"call.arg.x": value} for value in range(20)]

    assert separate(positives, [{"call.arg.x": 100}, {"call.arg.x": 101}]) == []


def test_incidental_facts_need_more_than_a_few_negatives() -> None:
    """Where few occasions did not hold, an argument sets them apart by accident."""
    positives, negatives = [{"call.arg.x": 1}], [{"call.arg.x": 2}]

    assert separate(positives, negatives)
    assert separate(positives, negatives, incidental_separates=False) == []


def test_a_name_is_the_last_resort() -> None:
    """The name of a variable separates only where no other fact does, and is never inverted."""
    named = {"var.name": "model.fc.weight"}
    other = {"var.name": "model.bn.weight"}

    with_fact = separate([named | {"var.held": True}], [other | {"var.held": False}])
    without = separate([named | {"var.held": True}], [other | {"var.held": True}])

    assert [props(group) for group in with_fact] == [[["var.held"]]]
    assert [props(group) for group in without] == [[["var.name"]]]


def test_names_are_not_used_to_describe_the_negatives() -> None:
    """ "Except for these variables" is no rule."""
    positives = [{"var.name": f"model.{number}"} for number in range(20)]

    assert separate(positives, [{"var.name": "model.last"}]) == []


def test_true_is_not_one() -> None:
    """Values of different types are different facts, as a bool and an int."""
    (group,) = separate([{"call.arg.x": True}], [{"call.arg.x": 1}])

    assert holds(group, {"call.arg.x": True})
    assert not holds(group, {"call.arg.x": 1})


def test_parts_that_python_takes_for_equal_are_all_kept() -> None:
    """`False` and 0 are equal in Python; a disjunction over both once lost one of them."""
    positives = [
        {"call.arg.x": False, "var.held": True},
        {"call.arg.y": True, "var.held": True},
        {"call.arg.x": 0, "call.arg.y": False, "var.held": True},
    ]

    (group,) = separate(positives, [{"var.held": True}])

    assert all(holds(group, each) for each in positives)


def test_nan_is_no_fact() -> None:
    """NaN equals nothing, so a clause about it would never hold."""
    assert separate([{"call.arg.x": math.nan}], [{"call.arg.x": 1.0}]) == []


def test_a_property_of_many_values_can_still_be_known_or_not() -> None:
    """Beyond eight values the clause says only that the property is known."""
    positives = [{"call.arg.x": value} for value in range(20)]

    (group,) = separate(positives, [{}])

    assert [clause.type for each in group.preconditions for clause in each.clauses] == ["exist"]


@settings(max_examples=300, deadline=None)
@given(CONTEXTS, CONTEXTS, st.randoms(use_true_random=False))
def test_every_precondition_separates_and_no_order_matters(
    positives: list[dict], negatives: list[dict], shuffle: random.Random
) -> None:
    """Each holds in all positives and in no negative; permuted input gives the same ones."""
    groups = separate(positives, negatives)

    assert len(groups) <= MAX_ALTERNATIVES
    for group in groups:
        assert all(holds(group, each) for each in positives)
        assert not any(holds(group, each) for each in negatives)
    shuffle.shuffle(positives)
    shuffle.shuffle(negatives)
    reordered = [dict(sorted(each.items(), reverse=True)) for each in positives]
    assert separate(reordered, negatives) == groups


@pytest.mark.parametrize("value", [True, 1, "a", None])
def test_a_single_fact_that_differs_is_found(value: object) -> None:
    """Whatever its type, a fact that all positives share and no negative has separates."""
    (group,) = separate([{"call.arg.x": value}], [{"call.arg.x": "other"}])

    assert holds(group, {"call.arg.x": value})
