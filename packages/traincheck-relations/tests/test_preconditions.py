"""Whether a precondition holds, and how it reads."""

from __future__ import annotations

import pytest

from traincheck_relations.conditions.preconditions import ALWAYS, condition_of, holds, in_words
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
)

HELD = Clause(type="constant", prop_name="var.held", values=(True,))


class Toy:
    name = "ToyRelation"
    group = "call"


def constant(name: str, *values: object) -> Clause:
    return Clause(type="constant", prop_name=name, values=values)


def group(*conjunctions: tuple[Clause, ...], inverted: bool = False) -> ConditionGroup:
    return ConditionGroup(
        inverted=inverted,
        preconditions=tuple(Conjunction(clauses=clauses) for clauses in conjunctions),
    )


def invariant(**preconditions: ConditionGroup) -> Invariant:
    return Invariant(
        id="1",
        text_description="a claim",
        relation="ToyRelation",
        params=(APIParam(api_full_name="f"),),
        precondition=preconditions,
    )


def test_an_unknown_property_is_not_constant() -> None:
    """What is not known is not among the values."""
    assert not holds(group((HELD,)), {})


def test_none_is_a_value() -> None:
    """An argument that was None is known."""
    assert holds(group((constant("call.arg.x", None),)), {"call.arg.x": None})
    assert holds(group((Clause(type="exist", prop_name="call.arg.x"),)), {"call.arg.x": None})


@pytest.mark.parametrize(
    ("value", "expected"), [(1, True), (1.0, True), (True, False), ("1", False)]
)
def test_values_are_compared_with_their_type(value: object, expected: bool) -> None:  # noqa: FBT001
    """A number is that number however it is written; a bool or a text is none."""
    assert holds(group((constant("call.arg.x", 1),)), {"call.arg.x": value}) is expected


def test_one_conjunction_is_enough_and_inversion_wants_none() -> None:
    """A group is a disjunction; inverted, it holds where no conjunction does."""
    either = (constant("a", 1), constant("b", 1)), (constant("a", 2),)

    assert holds(group(*either), {"a": 2})
    assert not holds(group(*either), {"a": 1})
    assert holds(group(*either, inverted=True), {"a": 1})
    assert not holds(group(*either, inverted=True), {"a": 1, "b": 1})


@pytest.mark.parametrize("kind", ["consistent", "unequal"])
def test_a_clause_about_several_records_is_refused(kind: str) -> None:
    """What cannot be evaluated must not silently hold or fail."""
    clause = Clause(type=kind, prop_name="var.name")

    with pytest.raises(InvariantError, match=kind):
        holds(group((clause,)), {})


def test_an_invariant_without_precondition_always_applies() -> None:
    """A file that gives no precondition means none."""
    assert condition_of(invariant(), Toy()) == ALWAYS


def test_a_precondition_of_an_unknown_group_is_refused() -> None:
    """A group that the relation does not have would otherwise be ignored."""
    with pytest.raises(InvariantError, match=r"'pre'.*ToyRelation has 'call'"):
        condition_of(invariant(pre=ALWAYS), Toy())


def test_words() -> None:
    """Known facts have phrases of their own; others are named."""
    assert in_words(ALWAYS) == ""
    assert in_words(
        group((Clause(type="constant", prop_name="var.requires_grad", values=(True,)),))
    ) == ("when the variable requires a gradient")
    assert in_words(group((constant("call.arg.dim", 0, 1),), (constant("run.stage", "init"),))) == (
        "when the argument dim is 0 or 1, or the stage of the run is init"
    )
    assert in_words(group((constant("call.arg.x.ndim", 2), constant("var.ndim", 1)))) == (
        "when the number of dimensions of the argument x is 2 and the number of dimensions of the "
        "variable is 1"
    )
    assert in_words(group((constant("call.arg.x.dtype", "float32"),))) == (
        "when the dtype of the argument x is float32"
    )
    assert in_words(group((constant("module.held", True),))) == (  # noqa: FBT003  a value
        "when the parameters of its module are held by an optimizer"
    )
    assert in_words(group((HELD,), inverted=True)) == (
        "except when the variable is held by an optimizer"
    )
