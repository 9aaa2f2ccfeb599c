"""A variable, and a change of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from traincheck_trace_schema.codec import dumps

Json: TypeAlias = Any
Holders: TypeAlias = tuple[tuple[str, int], ...]  # names of optimizers, and indices of groups


@attrs.define(eq=False, kw_only=True)
class Variable:
    """Something whose state is followed; what it was told as."""

    id: int
    role: str
    type: str
    storage: int  # equal numbers share memory
    names: tuple[str, ...]
    holders: Holders = ()
    is_told: bool = False
    _written: tuple[tuple[object, ...], str] = ((), "")

    def text(self) -> str:
        """Return the fields of a record that say which variable it is, as JSON."""
        stands = self.names, self.holders, self.storage
        if self._written[0] != stands:
            fields = {
                "id": self.id,
                "names": self.names,
                "role": self.role,
                "type": self.type,
                "storage": self.storage,
                "held_by": [{"optimizer": name, "group": group} for name, group in self.holders],
            }
            self._written = stands, dumps(fields)[1:-1]
        return self._written[1]


@attrs.frozen(kw_only=True)
class Change:
    """A variable that was not as it was when last looked at."""

    event: str
    variable: Variable
    attributes: Mapping[str, str]  # those that differ, as JSON
    is_late: bool = False  # it may have come before the last look, which read only a part
