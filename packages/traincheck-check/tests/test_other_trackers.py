"""Which invariants a trace with another tracker may tell otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traincheck_check.judging.other_trackers import other_trackers
from traincheck_relations.registry import load_relations
from traincheck_trace_schema.invariants import (
    APIParam,
    ConditionGroup,
    Conjunction,
    Invariant,
    OccasionParam,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from traincheck_trace_schema.invariants import Param

STEP = APIParam(api_full_name="torch.optim.Optimizer.step")
ANY = ConditionGroup(preconditions=(Conjunction(clauses="Unconditional"),))


def claim(relation: str, group: str, *params: Param) -> Invariant:
    """Claim something, as learnt with the subclass tracker."""
    return Invariant(
        id=relation,
        text_description="",
        relation=relation,
        params=params,
        precondition={group: ANY},
        tracker="subclass",
    )


CALLS = claim(
    "APIContainRelation", "parent_func_call_pre", STEP, APIParam(api_full_name="torch.add")
)
CHANGES = claim(
    "APIContainRelation",
    "parent_func_call_pre",
    STEP,
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data"),
)
TIES = claim(
    "ConsistencyRelation",
    "var",
    VarNameParam(var_name="model.a", attr_name="data"),
    VarNameParam(var_name="model.b", attr_name="data"),
    OccasionParam(phase="step_end"),
    ScopeParam(scope="ties"),
)


@pytest.mark.parametrize(
    ("one", "used", "told"),
    [
        (CALLS, {"sampler"}, set()),
        (CALLS, {None}, set()),
        (TIES, {"sampler"}, set()),
        (TIES, {None}, {"subclass"}),
        (CHANGES, {"subclass"}, set()),
        (CHANGES, {"sampler", "subclass"}, set()),
        (CHANGES, {"sampler"}, {"subclass"}),
        (CHANGES, {None}, {"subclass"}),
    ],
)
def test_it_matters_where_variables_are_looked_at_at_once(
    one: Invariant, used: Collection[str | None], told: set[str]
) -> None:
    """Calls need no tracker; what is compared when a step ends needs any."""
    assert other_trackers([one], load_relations(), used) == told
