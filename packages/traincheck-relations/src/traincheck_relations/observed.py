"""Calls around which the variables were looked at, with their state before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from traincheck_relations.api import Call, Event, VariableState


@attrs.frozen(kw_only=True)
class ObservedCall:
    """A call, and every variable of its process before and after it, in `attributes`."""

    call: Call
    attributes: frozenset[str]
    before: Mapping[int, VariableState]
    after: Mapping[int, VariableState]

    def pairs(self) -> Iterator[tuple[VariableState, VariableState]]:
        """Yield the variables that were there all along, before and after the call."""
        for id_, before in self.before.items():
            if (after := self.after.get(id_)) is not None:
                yield before, after


class ObservedCalls:
    """Puts the points of observation together into calls; feed it `observe` events."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[frozenset[str], Mapping[int, VariableState]]] = {}

    def on_observe(self, event: Event) -> ObservedCall | None:
        """Take an observation; return the call that it completes."""
        call, record = event.call, event.record
        if call is None:
            return None
        key = (event.process, call.id)
        attributes = frozenset(record["attributes"])
        if record["phase"] == "begin":
            self._open[key] = (attributes, dict(event.run.variables()))
            return None
        begun = self._open.pop(key, None)
        if begun is None:
            return None
        looked_at, before = begun
        return ObservedCall(
            call=call,
            attributes=attributes & looked_at,
            before=before,
            after=event.run.variables(),
        )

    def forget(self, process: int) -> None:
        """Forget the calls of a process that are not complete."""
        for key in [key for key in self._open if key[0] == process]:
            del self._open[key]


def is_comparable(state: VariableState, attribute: str) -> bool:
    """Whether the trace says enough of an attribute to tell it from another value."""
    if attribute not in state.attributes:
        return False
    value = state.attributes[attribute]
    if isinstance(value, Mapping) and isinstance(tensor := value.get("tensor"), Mapping):
        return tensor.get("digest") is not None or tensor.get("data") is not None
    return True


def has_changed(before: VariableState, after: VariableState, attribute: str) -> bool:
    """Whether an attribute that is comparable in both states differs."""
    old, new = before.attributes[attribute], after.attributes[attribute]
    return old is not new and old != new
