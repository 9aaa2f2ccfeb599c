"""Whether a precondition follows from another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_infer.implication import follows
from traincheck_relations.conditions.preconditions import ALWAYS, holds
from traincheck_trace_schema.invariants import Clause, ConditionGroup, Conjunction

VALUES = (True, 1, 0, "x")
CLAUSES = st.builds(
    Clause,
    type=st.just("constant"),
    prop_name=st.sampled_from("ab"),
    values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=2).map(tuple),
) | st.builds(Clause, type=st.just("exist"), prop_name=st.sampled_from("ab"))
CONJUNCTIONS = st.just(Conjunction(clauses="Unconditional")) | st.builds(
    Conjunction, clauses=st.lists(CLAUSES, max_size=2).map(tuple)
)
GROUPS = st.builds(
    ConditionGroup,
    inverted=st.booleans(),
    preconditions=st.lists(CONJUNCTIONS, min_size=1, max_size=2).map(tuple),
)
CONTEXTS = st.dictionaries(st.sampled_from("ab"), st.sampled_from(VALUES))


@given(GROUPS, GROUPS, st.lists(CONTEXTS, max_size=12))
def test_what_follows_holds_wherever_the_other_does(
    stronger: ConditionGroup, weaker: ConditionGroup, contexts: list
) -> None:
    """An invariant is dropped only for one that applies wherever it does."""
    if follows({"group": stronger}, {"group": weaker}):
        for context in contexts:
            assert holds(weaker, context) or not holds(stronger, context)


@given(GROUPS)
def test_each_follows_from_itself_and_always_from_each(group: ConditionGroup) -> None:
    """The plainest cases are seen."""
    assert follows({"group": group}, {"group": group})
    assert follows({"group": group}, {"group": ALWAYS})
    assert follows({}, {"group": ALWAYS})


@pytest.mark.parametrize("is_inverted", [False, True])
def test_more_clauses_are_stronger(is_inverted: bool) -> None:  # noqa: FBT001
    """And the negation of a description with fewer clauses."""
    one = Clause(type="constant", prop_name="a", values=("x",))
    two = Clause(type="exist", prop_name="b")
    few, many = (
        ConditionGroup(inverted=is_inverted, preconditions=(Conjunction(clauses=clauses),))
        for clauses in ((one,), (one, two))
    )
    stronger, weaker = (few, many) if is_inverted else (many, few)

    assert follows({"group": stronger}, {"group": weaker})
    assert not follows({"group": weaker}, {"group": stronger})


@pytest.mark.parametrize(
    ("stronger", "weaker", "expected"),
    [(("x",), ("x", 0), True), (("x", 0), ("x",), False), ((True,), (1,), False)],
)
def test_fewer_values_are_stronger(stronger: tuple, weaker: tuple, expected: bool) -> None:  # noqa: FBT001
    """And `True` is not 1."""
    groups = [
        {
            "group": ConditionGroup(
                preconditions=(
                    Conjunction(clauses=(Clause(type="constant", prop_name="a", values=values),)),
                )
            )
        }
        for values in (stronger, weaker)
    ]

    assert follows(*groups) is expected
