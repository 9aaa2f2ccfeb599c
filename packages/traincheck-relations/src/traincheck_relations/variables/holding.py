"""Which groups of optimizers hold each parameter, and what hyper-parameters these have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.conditions.properties import object_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_relations.api import Call, Event, VariableState
    from traincheck_trace_schema.values import Json

TOLERANCE = "tolerance_grad"  # the hyper-parameter below which LBFGS leaves all as it is
# Resolution of float32 at 1: a step of this size leaves a weight of that size as it is.
_TOO_SMALL = 1e-7


class Holdings:
    """Follows `var` records of parameters and of optimizers."""

    def __init__(self) -> None:
        self._holders: dict[tuple[int, int], tuple[str, ...]] = {}  # by process and parameter
        self._groups: dict[tuple[int, str], int] = {}  # by process and name

    def on_var(self, event: Event) -> None:
        """Take the next `var` event."""
        record = event.record
        if record["role"] == "optimizer":
            self._groups[event.process, record["names"][0]] = record["id"]
        elif record["role"] == "parameter":
            self._holders[event.process, record["id"]] = tuple(
                f"{holder['optimizer']}.group{holder['group']}"
                for holder in record.get("held_by", ())
            )

    def groups_of(self, event: Event, variable: VariableState) -> tuple[str, ...]:
        """Return the names of the groups that hold a parameter, as "optimizer0.group1"."""
        return self._holders.get((event.process, variable.id), ())

    def hyper_parameters(self, event: Event, group: str) -> Mapping[str, Json]:
        """Return the hyper-parameters of a group at this event, as far as the trace tells."""
        id_ = self._groups.get((event.process, group))
        state = None if id_ is None else event.run.variables().get(id_)
        return {} if state is None else state.attributes

    def groups_of_caller(self, event: Event, call: Call) -> dict[str, Mapping[str, Json]]:
        """Return the groups of the optimizer that is called, by name."""
        prefix = f"{object_name(call)}.group"
        names = (name for process, name in self._groups if process == event.process)
        found = {name: self.hyper_parameters(event, name) for name in names}
        return {name: of for name, of in found.items() if of and name.startswith(prefix)}

    def may_stop(self, event: Event, call: Call) -> bool:
        """Whether the optimizer that is called may find that it has converged, as LBFGS does."""
        return any(TOLERANCE in of for of in self.groups_of_caller(event, call).values())

    def resting(self, event: Event) -> frozenset[int]:
        """Return the ids of the parameters that no group can move: its learning rate is zero.

        So is, in effect, one that is smaller than what weights are rounded to.
        """
        at_rest = {
            name
            for process, name in self._groups
            if process == event.process and is_at_rest(self.hyper_parameters(event, name))
        }
        if not at_rest:
            return frozenset()
        return frozenset(
            id_
            for (process, id_), groups in self._holders.items()
            if process == event.process and groups and at_rest.issuperset(groups)
        )


def is_at_rest(group: Mapping[str, Json]) -> bool:
    """Whether the learning rate of a group is told and too small to move anything."""
    rate = number(group.get("lr"))
    return rate is not None and abs(rate) < _TOO_SMALL


def number(value: Json) -> float | None:
    """Return a value that is a number; flags are none, nor is what JSON lacks."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
