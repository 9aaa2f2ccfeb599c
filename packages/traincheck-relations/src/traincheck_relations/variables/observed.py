"""Calls around which the variables were looked at, with their state before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from traincheck_relations.api import Call, Context, Event, VariableState
from traincheck_relations.conditions.properties import run_properties
from traincheck_relations.order.protocol import OPTIMIZER_STEP

_ROLE = "parameter"  # what calls change is claimed of parameters


@attrs.frozen(kw_only=True)
class ObservedCall:
    """A call, and every variable of its process before and after it, in `attributes`."""

    call: Call
    context: Context  # what was known of the run when it began
    attributes: frozenset[str]
    before: Mapping[int, VariableState]
    after: Mapping[int, VariableState]

    def pairs(self) -> Iterator[tuple[VariableState, VariableState]]:
        """Yield the variables that were there all along, before and after the call."""
        for id_, before in self.before.items():
            if (after := self.after.get(id_)) is not None:
                yield before, after


def is_of_parameters(event: Event) -> bool:
    """Whether a `var` or `observe` record speaks of parameters."""
    record = event.record
    return _ROLE in record["roles"] if event.kind == "observe" else record["role"] == _ROLE


def looked_at(event: Event, role: str = _ROLE) -> dict[int, VariableState]:
    """Return the variables of a role that an `observe` record covers."""
    if role not in event.record["roles"]:
        return {}
    return {id_: one for id_, one in event.run.variables().items() if one.role == role}


def stepping(event: Event) -> Call | None:
    """Return the optimizer's step at whose begin an `observe` record looks, if it is one."""
    call = event.call
    is_begin = event.record["phase"] == "begin"
    return call if is_begin and call is not None and OPTIMIZER_STEP in call.names else None


class ObservedCalls:
    """Puts the points of observation together into calls; feed it `observe` events."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], ObservedCall] = {}

    def on_observe(self, event: Event) -> ObservedCall | None:
        """Take an observation; return the call that it completes."""
        call = event.call
        if call is None or not is_of_parameters(event):
            return None
        key = (event.process, call.id)
        attributes = frozenset(event.record["attributes"])
        variables = event.run.variables()
        if event.record["phase"] == "begin":
            before = looked_at(event)
            self._open[key] = ObservedCall(
                call=call,
                context=run_properties(event),
                attributes=attributes,
                before=before,
                after=before,
            )
            return None
        begun = self._open.pop(key, None)
        if begun is None:
            return None
        return attrs.evolve(begun, attributes=begun.attributes & attributes, after=variables)

    def forget(self, process: int) -> None:
        """Forget the calls of a process that are not complete."""
        for key in [key for key in self._open if key[0] == process]:
            del self._open[key]
