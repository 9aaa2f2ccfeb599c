"""The instrumentation plan (document `traincheck.plan`): what is to be recorded."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from traincheck_trace_schema.constraints import Name, Version1
from traincheck_trace_schema.records import Role

SCHEMA: Final = "traincheck.plan"
VERSION: Final = "1.0"


@attrs.frozen(kw_only=True)
class FunctionPlan:
    """Record the calls of a function, and of those that override it."""

    name: Name
    arguments: Literal["all"] | tuple[str, ...] = ()
    result: bool = False


@attrs.frozen(kw_only=True)
class VariablePlan:
    """Record these attributes of the tracked variables of a role."""

    role: Role
    attributes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Plan:
    """What to record; `functions` None: every public Python function of the modules."""

    schema: Literal["traincheck.plan"] = SCHEMA
    version: Version1 = VERSION
    id: Name
    functions: tuple[FunctionPlan, ...] | None
    variables: tuple[VariablePlan, ...]
    observe: tuple[str, ...] = ()  # functions at whose begin and end the variables are looked at
    observe_before: tuple[str, ...] = ()  # functions at whose begin alone
    observe_after: tuple[str, ...] = ()  # functions at whose end alone
    contexts: tuple[str, ...] = ()  # as "grad_mode", "autocast"

    @property
    def looks_around(self) -> tuple[str, ...]:
        """The functions at whose begin or end the variables are looked at."""
        return tuple(dict.fromkeys((*self.observe, *self.observe_before, *self.observe_after)))
