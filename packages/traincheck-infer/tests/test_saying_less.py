"""What follows from another invariant is left out."""

from __future__ import annotations

import pytest

from traincheck_infer.saying_less import Functions, Known, without_implied
from traincheck_trace_schema.invariant_file import invariant_id
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    InputOutputParam,
    Invariant,
    OccasionParam,
    Param,
    VarNameParam,
    VarTypeParam,
)

SGD, BASE = "torch.optim.SGD.step", "torch.optim.Optimizer.step"
BASES = Functions(bases={SGD: (BASE,)})


def known(
    *params: Param, when: str | None = None, values: tuple[str, ...] = (), occasions: int = 1
) -> Known:
    kind = "constant" if values else "exist"
    clauses = (Clause(type=kind, prop_name=when, values=values),) if when else "Unconditional"
    group = ConditionGroup(preconditions=(Conjunction(clauses=clauses),))
    precondition = {"group": group}
    invariant = Invariant(
        id=invariant_id("Toy", params, precondition),
        text_description="a claim",
        relation="Toy",
        params=params,
        precondition=precondition,
    )
    return Known(invariant, occasions)


def api(name: str) -> APIParam:
    return APIParam(api_full_name=name)


def at(name: str) -> OccasionParam:
    return OccasionParam(function=name, phase="end")


def result_of(name: str) -> InputOutputParam:
    return InputOutputParam(name="result", type="torch.Tensor", api_name=name, is_input=False)


def left_of(*invariants: Known, functions: Functions = BASES) -> set[str]:
    left = without_implied(invariants, functions)
    assert left == without_implied(invariants[::-1], functions)
    return {one.invariant.id for one in left}


def ids(*invariants: Known) -> set[str]:
    return {one.invariant.id for one in invariants}


@pytest.mark.parametrize("param", [api, at, result_of])
def test_the_twin_of_a_base_is_left_out(param: type) -> None:
    """What is known of every optimizer need not be told of one, however it is named."""
    general = known(param(BASE), api("f"))

    assert left_of(known(param(SGD), api("f")), general) == ids(general)


def test_another_claim_or_condition_is_kept() -> None:
    """Only what is the same but for the name of the function follows."""
    kept = [
        known(api(SGD), api("f")),
        known(api(BASE), api("g")),
        known(api(BASE), api("f"), when="var.held"),
    ]

    assert left_of(*kept) == ids(*kept)


def test_without_the_general_one_the_specific_is_kept() -> None:
    """What held of SGD only is told of SGD."""
    specific = known(api(SGD))

    assert left_of(specific) == ids(specific)


def test_what_applies_less_often_is_left_out() -> None:
    """A claim that holds always holds in training, too; and one that is made of a base method."""
    general = known(api(BASE))

    assert left_of(known(api(BASE), when="run.stage"), general) == ids(general)
    assert left_of(known(api(SGD), when="run.stage"), general) == ids(general)


def test_one_parameter_need_not_be_told_where_each_is() -> None:
    """A variable's copy of what holds for all of its type says nothing new."""
    each = VarTypeParam(var_type="torch.nn.Parameter", attr_name="data")
    one = VarNameParam(var_name="fc.bias", var_type="torch.nn.Parameter", attr_name="data")
    grad = VarNameParam(var_name="fc.bias", var_type="torch.nn.Parameter", attr_name="grad")
    general, other = known(api("f"), each), known(api("f"), grad)

    assert left_of(known(api("f"), one), general, other) == ids(general, other)


def test_some_variable_does_not_stand_for_one() -> None:
    """That some parameter changes does not say that this one does."""
    some = VarTypeParam(var_type="T", attr_name="data", quantifier="some")
    one = VarNameParam(var_name="fc.bias", var_type="T", attr_name="data")
    kept = known(api("f"), some), known(api("f"), one)

    assert left_of(*kept) == ids(*kept)


@pytest.mark.parametrize(
    ("callee", "occasions", "is_left"),
    [
        ("torch._adam", 2, True),  # private: nobody else calls it
        ("torch.adam", 1, True),
        ("torch.adam", 2, False),
    ],
)
def test_the_twin_of_the_only_caller_is_left_out(
    callee: str,
    occasions: int,
    is_left: bool,  # noqa: FBT001
) -> None:
    """If a function is called in another alone, one of the two says it all."""
    functions = Functions(callers={callee: frozenset({"torch.Adam.step"})})
    caller = known(api("torch.Adam.step"), occasions=1)
    twin = known(api(callee), occasions=occasions)

    left = left_of(caller, twin, functions=functions)

    assert left == (ids(caller) if is_left else ids(caller, twin))


def test_a_function_that_others_call_too_has_no_twin() -> None:
    """Also the program itself may call it."""
    for others in ({"g"}, {None}):
        functions = Functions(callers={"h": frozenset({"f", *others})})
        kept = known(api("f")), known(api("h"))

        assert left_of(*kept, functions=functions) == ids(*kept)


def test_of_two_bases_of_one_function_the_more_general_stays() -> None:
    """If they were called on the same occasions."""
    functions = Functions(bases={"C.f": ("B.f", "A.f")})
    general = known(api("A.f"))
    other = known(api("B.f"), occasions=2)

    assert left_of(known(api("B.f")), general, functions=functions) == ids(general)
    assert left_of(other, general, functions=functions) == ids(other, general)


def test_functions_that_call_each_other_do_not_both_vanish() -> None:
    """One of two that imply each other stays."""
    functions = Functions(callers={"f": frozenset({"g"}), "g": frozenset({"f"})})

    assert len(left_of_any(known(api("f")), known(api("g")), functions=functions)) == 1


def left_of_any(*invariants: Known, functions: Functions) -> list[Known]:
    return without_implied(invariants, functions)
