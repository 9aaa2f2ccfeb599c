"""What is to be told of variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_instrument.settings import TensorFormat
from traincheck_trace_schema.records import Phase

if TYPE_CHECKING:
    from traincheck_trace_schema.plan import VariablePlan

# By role, the attributes to look at; None: all that there are.
Looks: TypeAlias = Mapping[str, Collection[str] | None]

ATTRIBUTES = ("data", "grad", "requires_grad")  # of parameters
ROLES = ("parameter", "buffer", "module", "optimizer", "scheduler", "scaler")


@attrs.frozen(kw_only=True)
class Wanted:
    """What is to be told of variables, and in which form their content is."""

    attributes: Looks = attrs.field(factory=dict)
    tensor_format: TensorFormat = "hash"
    # By what a call does to variables, in which phases it is looked at; None: in both, of all.
    phases: Mapping[str, Collection[Phase]] | None = None

    def of(self, role: str, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the names of attributes that are wanted of a role."""
        if role not in self.attributes:
            return ()
        wanted = self.attributes[role]
        return tuple(name for name in names if wanted is None or name in wanted)


def wanted_by(variables: Iterable[VariablePlan]) -> dict[str, Collection[str] | None]:
    """Return, by role, the attributes that a plan names."""
    wanted: dict[str, Collection[str] | None] = {}
    for entry in variables:
        wanted[entry.role] = {*(wanted.get(entry.role) or ()), *entry.attributes}
    return wanted
