"""Invariants (document `traincheck.invariants`), one a line of a JSON Lines file."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import ClassVar, Final, Literal, TypeAlias

import attrs

from traincheck_trace_schema.constraints import Count, Name, Share, Version1
from traincheck_trace_schema.occasion import Reference
from traincheck_trace_schema.values import Json, Scalar, Value  # noqa: F401  Value is made of Json

SCHEMA: Final = "traincheck.invariants"
VERSION: Final = "1.0"


class Free(enum.Enum):
    """Stands for a value that a param leaves free, where null says that it is `None`."""

    ANY = enum.auto()


@attrs.frozen(kw_only=True)
class APIParam:
    """An API, by name; a call of a function that overrides it counts too.

    `exception`: only calls that raise it. `arguments`: only calls with these, by parameter name; an
    object among them stands for every object of its type that has the attributes that it tells.
    """

    param_type: ClassVar[Literal["APIParam"]] = "APIParam"
    api_full_name: Name
    exception: str | None = None
    # A mapping has no hash; params that differ in it only are still told apart, being unequal.
    arguments: Mapping[str, Value] = attrs.field(factory=dict, hash=False)

    @property
    def is_any_call(self) -> bool:
        """Whether each call of the function is meant, whatever its arguments and outcome."""
        return self.exception is None and not self.arguments


@attrs.frozen(kw_only=True)
class VarTypeParam:
    """An attribute of every variable of a type.

    `pre_value` and `post_value` are `"none"`, `"zero"`, `"non_zero"`, `"non_none"` or `"anything"`.
    `quantifier`: the claim is about `each` such variable, or about `some` one of them.
    `const_value`: the value that it always has.
    """

    param_type: ClassVar[Literal["VarTypeParam"]] = "VarTypeParam"
    var_type: str
    attr_name: str
    pre_value: str = "anything"
    post_value: str = "anything"
    const_value: Value | Free = attrs.field(default=Free.ANY, hash=False)
    quantifier: Literal["each", "some"] = "each"


@attrs.frozen(kw_only=True)
class VarNameParam:
    """An attribute of the variable with this name; the other fields are as in `VarTypeParam`."""

    param_type: ClassVar[Literal["VarNameParam"]] = "VarNameParam"
    var_name: str
    attr_name: str
    var_type: str | None = None
    pre_value: str = "anything"
    post_value: str = "anything"
    const_value: Value | Free = attrs.field(default=Free.ANY, hash=False)


@attrs.frozen(kw_only=True)
class InputOutputParam:
    """A part of what a call takes or gives.

    `name` is that of an argument, or `input_tensors` or `output_tensors`; of these, `index` says
    which. `additional_path` leads into it, as `("shape", 0)`.
    """

    param_type: ClassVar[Literal["InputOutputParam"]] = "InputOutputParam"
    name: Name
    index: Count | None = None
    type: str
    additional_path: tuple[Scalar, ...] | None = None
    api_name: Name
    is_input: bool


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


Param: TypeAlias = (
    APIParam
    | VarTypeParam
    | VarNameParam
    | InputOutputParam
    | OccasionParam
    | ScopeParam
    | ValueParam
)
Params: TypeAlias = tuple[Param, ...]


def function_of(param: Param) -> str | None:
    """Return the function that a param names, if it names one."""
    if isinstance(param, APIParam):
        return param.api_full_name
    if isinstance(param, InputOutputParam):
        return param.api_name
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
    """A relation that always held, and when. `id` depends on relation, params and precondition.

    `likelihood`: how likely it is that a breach is a bug; None: nobody says.
    """

    schema: Literal["traincheck.invariants"] = SCHEMA
    version: Version1 = VERSION
    id: Name
    text_description: str
    relation: Name
    params: Params
    precondition: Mapping[str, ConditionGroup]
    num_positive_examples: Count | None = None
    num_negative_examples: Count | None = None
    runs: tuple[str, ...] = ()
    tracker: str | None = None
    likelihood: Share | None = None
    reference: Reference | None = None  # where it held first
