"""An invariant as TrainCheck 0.x wrote it: its form, and how what can't be expressed is said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from traincheck_trace_schema.values import Json, Scalar

NO_PATH = "None"  # how 0.x writes that a clause has no `additional_path`

ClauseType: TypeAlias = Literal["constant", "consistent", "unequal", "exist"]


class NotExpressibleError(Exception):
    """Something that an old invariant says has no counterpart; the message says what."""


@attrs.frozen(kw_only=True)
class OldClause:
    """A condition on a column of 0.x's table of records."""

    type: ClauseType
    prop_name: str
    additional_path: Json = NO_PATH
    values: Json = attrs.field(factory=list)

    @property
    def path(self) -> tuple[Any, ...]:
        """The keys that lead into the property's value."""
        return tuple(self.additional_path) if isinstance(self.additional_path, list) else ()

    @property
    def allowed(self) -> tuple[Scalar, ...]:
        """The values of a constant.

        Raises:
            NotExpressibleError: a value is no scalar.
        """
        values = self.values if isinstance(self.values, list) else [self.values]
        for value in values:
            is_scalar = value is None or isinstance(value, str | int | float)
            if not is_scalar or (isinstance(value, float) and not math.isfinite(value)):
                raise NotExpressibleError(f"its precondition has a value {value!r}")
        return tuple(values)


@attrs.frozen(kw_only=True)
class OldConjunction:
    """All clauses hold."""

    clauses: tuple[OldClause, ...] | Literal["Unconditional"]


@attrs.frozen(kw_only=True)
class OldGroup:
    """One of the conjunctions holds or, if `inverted`, none does."""

    inverted: bool = False
    preconditions: tuple[OldConjunction, ...]


@attrs.frozen(kw_only=True)
class OldInvariant:
    """A line of an invariant file of 0.x."""

    relation: str
    params: tuple[Mapping[str, Json], ...]
    precondition: Mapping[str, OldGroup] = attrs.field(factory=dict)
    num_positive_examples: int | None = None
    num_negative_examples: int | None = None


def is_old_invariant(line: Any) -> bool:
    """Whether a line is an invariant of 0.x: it has no `schema`, but a relation and its params."""
    return (
        isinstance(line, dict) and "schema" not in line and "relation" in line and "params" in line
    )
