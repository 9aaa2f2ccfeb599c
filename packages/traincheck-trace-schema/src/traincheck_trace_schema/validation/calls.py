"""The rules about calls, and about the functions and source lines that they refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.validation.finding import Remarks
from traincheck_trace_schema.validation.ids import SeenIds

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_KNOWN: Final = 1_000_000  # calls open at a time, functions, lines; then all are forgotten


@attrs.define
class CallRules:
    """Follows which calls are open. Of what is missing it tells once, and takes it as told."""

    _remarks: Remarks
    _open: dict[int, str | None] = attrs.field(factory=dict)  # call: function, None: not known
    _calls: SeenIds = attrs.field(factory=SeenIds)
    _sources: set[int] = attrs.field(factory=set)
    _functions: set[str] = attrs.field(factory=set)

    def on_function(self, record: Mapping[str, Any]) -> None:
        """Take a function, which is told once."""
        if record["name"] in self._functions:
            self._remarks.problem(f"tells the function {record['name']!r} again")
        self._functions.add(record["name"])
        self._forget_if_many()

    def on_source(self, record: Mapping[str, Any]) -> None:
        """Take a source line, which is told once."""
        if record["id"] in self._sources:
            self._remarks.problem(f"tells the source {record['id']} again")
        self._sources.add(record["id"])
        self._forget_if_many()

    def on_begin(self, record: Mapping[str, Any]) -> None:
        """Take a call that begins, of a function that was told, within one that is open."""
        call, function = record["id"], record["function"]
        if not self._calls.add(call):
            self._remarks.problem(f"field 'id' must be new; a call {call} began before")
        if function not in self._functions:
            self._functions.add(function)
            self._remarks.unless_lost(f"no function record told {function!r} before its first call")
        self.refer("parent", record)
        self.refer_to_source(record)
        self._open[call] = function
        self._forget_if_many()

    def on_over(self, record: Mapping[str, Any]) -> None:
        """Take a call that ends, under the name that it began with."""
        call, function = record["id"], record["function"]
        if call not in self._open:
            self._remarks.unless_lost(f"ends the call {call}, which is not open")
        begun = self._open.pop(call, None)
        if begun is not None and begun != function:
            self._remarks.problem(f"ends the call {call} of {begun!r} as one of {function!r}")

    def on_observe(self, record: Mapping[str, Any]) -> None:
        """Take an observation, which at the begin or end of a call says of which."""
        call, function = record.get("call"), record.get("function")
        if call is None and record["phase"] != "step_end":
            self._remarks.problem(
                f"field 'call' must be the call whose {record['phase']} it is; got null"
            )
        self.refer("call", record)
        begun = None if call is None else self._open.get(call)
        if call is not None and function is not None and begun not in (None, function):
            self._open[call] = None  # whatever it is: told once
            self._remarks.problem(
                f"field 'function' must be {begun!r}, that of the call {call}; got {function!r}"
            )

    def refer(self, field: str, record: Mapping[str, Any]) -> None:
        """Look at a field that names a call, which must be open."""
        call = record.get(field)
        if call is not None and call not in self._open:
            self._open[call] = None
            self._remarks.unless_lost(f"field {field!r} must be a call that is open; got {call}")

    def refer_to_source(self, record: Mapping[str, Any]) -> None:
        """Look at the source line that a record names, which must have been told."""
        source = record.get("src")
        if source is not None and source not in self._sources:
            self._sources.add(source)
            self._remarks.unless_lost(f"no source record told the source {source} before")

    def on_clean_end(self) -> None:
        """Hint at calls that never ended."""
        left = [(call, function) for call, function in self._open.items() if function is not None]
        if left:
            call, function = left[0]
            more = f", nor did {len(left) - 1} more" if len(left) > 1 else ""
            self._remarks.hint(f"the call {call} of {function!r} never ended{more}")

    def _forget_if_many(self) -> None:
        for known in (self._open, self._sources, self._functions):
            if len(known) > MOST_KNOWN:
                known.clear()
                self._remarks.is_lossy = True
