"""What kind of claim an invariant makes, and how much its violation tells."""

from __future__ import annotations

from traincheck_check.diagnosing.pattern import Pattern, pattern_of
from traincheck_trace_schema.invariants import (
    APIParam,
    InputOutputParam,
    Invariant,
    OccasionParam,
    Param,
    ScopeParam,
    ValueParam,
    VarNameParam,
    VarTypeParam,
)

STEP = "torch.optim.Optimizer.step"


def api(name: str) -> APIParam:
    return APIParam(api_full_name=name)


def var(attribute: str, quantifier: str = "each") -> VarTypeParam:
    return VarTypeParam(var_type="torch.nn.Parameter", attr_name=attribute, quantifier=quantifier)


def flag(name: str, attribute: str = "training") -> VarNameParam:
    return VarNameParam(var_name=name, attr_name=attribute, const_value=False)


def given(name: str, function: str = "f") -> InputOutputParam:
    return InputOutputParam(name=name, type="bool", api_name=function, is_input=True)


def pattern(*params: Param, relation: str = "Toy") -> Pattern:
    return pattern_of(
        Invariant(id="1", text_description="", relation=relation, params=params, precondition={})
    )


RANKS = (OccasionParam(function=STEP, phase="end"), ScopeParam(scope="ranks"))


def test_what_tells_more_comes_first() -> None:
    """From a step that updates nothing to a call that is missing."""
    kinds = [
        pattern(api(STEP), var("data", "some")),
        pattern(var("held_by"), OccasionParam(function=STEP, phase="begin")),
        pattern(api("torch.Tensor.backward"), var("grad", "some")),
        pattern(api(STEP), var("data")),
        pattern(api("torch.Tensor.backward"), var("grad")),
        pattern(var("grad"), var("grad"), *RANKS),
        pattern(var("data"), var("data"), *RANKS),
        pattern(api("torch.nn.Module.to"), var("data")),
        pattern(given("training")),
        pattern(api("f"), api("g")),
    ]

    tells = [kind.tells for kind in kinds]
    assert tells == sorted(tells)
    assert len(set(tells)) == len(tells)


def test_a_state_explains_what_follows_from_it() -> None:
    """A flag that is wrong is told before a buffer that therefore did not change."""
    assert pattern(flag("model")).tells < pattern(api("f"), var("running_mean")).tells


def test_claims_of_one_kind_differ_in_names_only() -> None:
    """The same is said of two parts of a model, and of two functions with one argument."""
    assert pattern(flag("a")).kind == pattern(flag("b")).kind is not None
    assert pattern(given("x", "f")).kind == pattern(given("x", "g")).kind is not None

    assert pattern(flag("a")).kind != pattern(flag("a", "requires_grad")).kind
    assert pattern(given("x")).kind != pattern(given("y")).kind
    assert pattern(api(STEP), var("data")).kind != pattern(api("f"), var("data")).kind
    assert pattern(flag("a")).kind != pattern(flag("a"), relation="Other").kind


def test_of_calls_alone_nothing_is_of_one_kind() -> None:
    """That each of two orders is wrong does not say that they have one cause."""
    assert pattern(api("f"), api("g")).kind is None


def test_modes_are_known_by_the_flag_the_argument_and_by_what_follows_them() -> None:
    """As the rate of dropout does."""
    mode = ValueParam(name="mode", value="stage")

    assert pattern(flag("model")).is_of_mode
    assert pattern(given("training")).is_of_mode
    assert pattern(given("dropout_p"), mode).is_of_mode
    assert not pattern(given("dropout_p")).is_of_mode
