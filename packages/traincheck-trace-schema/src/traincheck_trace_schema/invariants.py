"""Invariants (document `traincheck.invariants`), one a line of a JSON Lines file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import attrs

from traincheck_trace_schema.values import Scalar

SCHEMA = "traincheck.invariants"
VERSION = "1.0"


@attrs.frozen(kw_only=True)
class APIParam:
    """An API, by name; a call of a function that overrides it counts too."""

    param_type: ClassVar[Literal["APIParam"]] = "APIParam"
    api_full_name: str


@attrs.frozen(kw_only=True)
class VarTypeParam:
    """An attribute of every variable of a type.

    `pre_value` and `post_value` are `"none"`, `"zero"`, `"non_zero"`, `"non_none"` or `"anything"`.
    `quantifier`: the claim is about `each` such variable, or about `some` one of them.
    """

    param_type: ClassVar[Literal["VarTypeParam"]] = "VarTypeParam"
    var_type: str
    attr_name: str
    pre_value: str = "anything"
    post_value: str = "anything"
    quantifier: Literal["each", "some"] = "each"


@attrs.frozen(kw_only=True)
class VarNameParam:
    """An attribute of the variable with this name."""

    param_type: ClassVar[Literal["VarNameParam"]] = "VarNameParam"
    var_name: str
    attr_name: str


@attrs.frozen(kw_only=True)
class OccasionParam:
    """When a claim is looked at: at this phase of the calls of a function, or at a step's end."""

    param_type: ClassVar[Literal["OccasionParam"]] = "OccasionParam"
    function: str | None = None
    phase: Literal["begin", "end", "step_end"]


@attrs.frozen(kw_only=True)
class ScopeParam:
    """Between what a claim compares: the ranks of a named group, or the names of one variable."""

    param_type: ClassVar[Literal["ScopeParam"]] = "ScopeParam"
    scope: Literal["ranks", "ties"]
    group: str = "world"


@attrs.frozen(kw_only=True)
class ValueParam:
    """A named constant: for relations that need something else."""

    param_type: ClassVar[Literal["ValueParam"]] = "ValueParam"
    name: str
    value: Scalar


Param: TypeAlias = APIParam | VarTypeParam | VarNameParam | OccasionParam | ScopeParam | ValueParam
Params: TypeAlias = tuple[Param, ...]


def function_of(param: Param) -> str | None:
    """Return the function that a param names, if it names one."""
    if isinstance(param, APIParam):
        return param.api_full_name
    return param.function if isinstance(param, OccasionParam) else None


@attrs.frozen(kw_only=True)
class Clause:
    """A condition on one property of an occasion's context.

    `constant`: the property is known and among `values`; `exist`: it is known.
    `consistent` and `unequal` are about several records and compare the property between them.
    """

    type: Literal["constant", "consistent", "unequal", "exist"]
    prop_name: str
    values: tuple[Scalar, ...] = ()


@attrs.frozen(kw_only=True)
class Conjunction:
    """All clauses hold; `"Unconditional"` stands for none."""

    clauses: tuple[Clause, ...] | Literal["Unconditional"]


@attrs.frozen(kw_only=True)
class ConditionGroup:
    """One of the conjunctions holds, or, if `inverted`, none of them does."""

    inverted: bool = False
    preconditions: tuple[Conjunction, ...]


@attrs.frozen(kw_only=True)
class Invariant:
    """A relation that always held, and when. `id` depends on relation, params and precondition."""

    schema: str = SCHEMA
    version: str = VERSION
    id: str
    text_description: str
    relation: str
    params: Params
    precondition: Mapping[str, ConditionGroup]
    num_positive_examples: int | None = None
    num_negative_examples: int | None = None
    runs: tuple[str, ...] = ()
    tracker: str | None = None
