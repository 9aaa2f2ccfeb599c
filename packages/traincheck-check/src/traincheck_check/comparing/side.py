"""One rank of one run in the window at hand: its process, script and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_check.comparing.script import END, LOOK, Process, Script
from traincheck_check.comparing.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_check.comparing.scope import Scope
    from traincheck_check.comparing.script import Raw
    from traincheck_trace_schema.window import Window


@attrs.define(eq=False)
class RankSide:
    """What is known of a rank in A, or in B."""

    letter: str  # "A" or "B"
    process: Process
    variables: Variables = attrs.field(factory=Variables)
    script: Script | None = None
    _applied: int = 0  # changes of the script

    def take(self, records: Iterable[Raw], window: Window, scope: Scope) -> Script:
        """Read a window."""
        self.script = self.process.take(records, window, scope)
        self._applied = 0
        if self.script.has_lost:
            self.variables.forget()
        return self.script

    def apply_changes(self, token: int | None = None) -> None:
        """Bring the variables up to before a token of the script, or to its end."""
        if self.script is None:
            return
        changes, window = self.script.changes, self.script.window
        while self._applied < len(changes):
            at, record = changes[self._applied]
            if token is not None and at > token:
                break
            self.variables.take(record, window)
            self._applied += 1

    def begun(self, id_: int | None) -> Raw | None:
        """Return the record by which a call of this window began."""
        if id_ is None or self.script is None:
            return None
        records = self.script.records
        is_it = (each for each in records if each["kind"] == "call_begin" and each["id"] == id_)
        return next(is_it, None)

    def looked_before(self, record: Raw) -> str | None:
        """Return the call at which was last looked at what a record tells, outside of any call."""
        since = record.get("between")
        if not since or self.script is None:
            return None
        looks = (each for each in self.script.records if each.get("seq") == since[0])
        return next((each.get("function") for each in looks), None)

    def around(self, record: Raw) -> tuple[str, ...]:
        """Return the names of the calls around a call, the outermost first."""
        names: list[str] = []
        parent = record.get("parent")
        while (begun := self.begun(parent)) is not None and begun.get("parent") != parent:
            names.append(begun["function"])
            parent = begun.get("parent")
        return (*self.process.around(parent), *reversed(names))

    def source(self, record: Raw | None) -> str | None:
        """Return "file:line" of the line of user code that a record names."""
        return None if record is None else self.process.source(record)

    def next_call(self, token: int) -> Raw | None:
        """Return the record of the next call from a token on, unless the call around it ends."""
        if self.script is None:
            return None
        for at in range(token, len(self.script.tokens)):
            name = self.script.tokens[at]
            if name == END:
                return None
            if not name.startswith(LOOK):
                return self.script.records[at]
        return None
