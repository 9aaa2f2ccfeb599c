"""What to look at first."""

from __future__ import annotations

import pytest

from traincheck_check.diagnosing.causes import Pattern, pattern_of, usual_causes
from traincheck_trace_schema.invariants import (
    APIParam,
    Invariant,
    OccasionParam,
    Param,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)

STEP = "torch.optim.Optimizer.step"
CONTAIN, CONSISTENCY = "APIContainRelation", "ConsistencyRelation"


def api(name: str) -> APIParam:
    return APIParam(api_full_name=name)


def var(attribute: str, quantifier: str = "each") -> VarTypeParam:
    return VarTypeParam(var_type="torch.nn.Parameter", attr_name=attribute, quantifier=quantifier)


def pattern(relation: str, *params: Param) -> Pattern:
    return pattern_of(
        Invariant(id="1", text_description="", relation=relation, params=params, precondition={})
    )


TIED = (
    *(VarNameParam(var_name=name, attr_name="data") for name in ("a", "b")),
    OccasionParam(phase="step_end"),
    ScopeParam(scope="ties"),
)
RANKS = (
    var("data"),
    var("data"),
    OccasionParam(function=STEP, phase="end"),
    ScopeParam(scope="ranks"),
)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (pattern(CONTAIN, api(STEP), var("data", "some")), "learning rate"),
        (pattern(CONTAIN, api(STEP), var("data")), "replaced, moved or wrapped"),
        (pattern(CONTAIN, api("torch.Tensor.backward"), var("grad")), "graph"),
        (pattern(CONTAIN, api("torch.optim.Optimizer.zero_grad"), var("grad")), "cleared"),
        (pattern(CONTAIN, api("f"), api("g")), "another function"),
        (pattern(CONSISTENCY, *RANKS), "DDP"),
        (pattern(CONSISTENCY, *TIED), "tied"),
        (pattern("InitialValueRelation", var("bias")), "checkpoint"),
    ],
)
def test_each_kind_of_claim_has_its_usual_causes(kind: Pattern, word: str) -> None:
    """The same relation fails for other reasons on other calls and attributes."""
    assert word in usual_causes(kind)


def test_of_an_unknown_relation_nothing_is_claimed() -> None:
    """A plugin's claims are not explained by guesses."""
    assert usual_causes(pattern("Toy", api(STEP), var("data"))) == ""


def test_what_tells_more_comes_first() -> None:
    """From a step that changes nothing to a call that is missing."""
    kinds = [
        pattern(CONTAIN, api(STEP), var("data")),
        pattern(CONTAIN, api("torch.Tensor.backward"), var("grad")),
        pattern(CONSISTENCY, *RANKS),
        pattern(CONTAIN, api("torch.nn.Module.to"), var("data")),
        pattern(CONTAIN, api("f"), api("g")),
    ]

    tells = [kind.tells for kind in kinds]
    assert tells == sorted(tells)
    assert len(set(tells)) == len(tells)
