"""What follows from a more general invariant is left out."""

from __future__ import annotations

from traincheck_infer.saying_less import without_implied
from traincheck_trace_schema.invariant_file import invariant_id
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    OccasionParam,
    Param,
)

SGD, BASE = "torch.optim.SGD.step", "torch.optim.Optimizer.step"
BASES = {SGD: (BASE,)}


def invariant(*params: Param, when: str | None = None) -> Invariant:
    clauses = (Clause(type="exist", prop_name=when),) if when else "Unconditional"
    group = ConditionGroup(preconditions=(Conjunction(clauses=clauses),))
    precondition = {"group": group}
    return Invariant(
        id=invariant_id("Toy", params, precondition),
        text_description="a claim",
        relation="Toy",
        params=params,
        precondition=precondition,
    )


def api(name: str) -> APIParam:
    return APIParam(api_full_name=name)


def at(name: str) -> OccasionParam:
    return OccasionParam(function=name, phase="end")


def test_the_twin_of_a_base_is_left_out() -> None:
    """What is known of every optimizer need not be told of one."""
    general = invariant(api(BASE), api("f"))

    assert without_implied([invariant(api(SGD), api("f")), general], BASES) == [general]


def test_occasions_have_bases_too() -> None:
    """An occasion names a function as a call does."""
    general = invariant(at(BASE))

    assert without_implied([invariant(at(SGD)), general], BASES) == [general]


def test_another_claim_or_condition_is_kept() -> None:
    """Only what is the same but for the name of the function follows."""
    kept = [
        invariant(api(SGD), api("f")),
        invariant(api(BASE), api("g")),
        invariant(api(BASE), api("f"), when="var.held"),
    ]

    assert without_implied(kept, BASES) == kept


def test_without_the_general_one_the_specific_is_kept() -> None:
    """What held of SGD only is told of SGD."""
    specific = invariant(api(SGD))

    assert without_implied([specific], BASES) == [specific]
