"""What one process did in a window: calls as tokens, and changes of variables in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_check.comparing.scope import Scope

Raw = Mapping[str, Any]

END: Final = ")"  # the token of a call's end; no function has this name
LOOK: Final = "?"  # how the tokens of observations begin
_LOST: Final = "sampling"  # the reason of a gap that loses nothing
_NOTHING: Final[Raw] = {}


@attrs.define(eq=False)
class Script:
    """A window of a process. Of two that did the same, the tokens are equal.

    A token is the name of a function that begins, `END`, or `LOOK` with what is looked at.
    `changes` have the number of tokens that came before them.
    """

    window: Window
    tokens: list[str] = attrs.field(factory=list)
    records: list[Raw] = attrs.field(factory=list)  # one a token
    changes: list[tuple[int, Raw]] = attrs.field(factory=list)
    has_lost: bool = False  # records are missing, and nobody knows which
    calls: int = 0


@attrs.define(eq=False)
class Process:
    """Follows one process of a run: what it told of functions, source lines and sampling."""

    rank: int
    header: Raw
    window: Window = BEFORE_FIRST_STEP
    first_step: int | None = None
    last_step: int | None = None  # that it began
    has_ended: bool = False  # cleanly
    calls: dict[int, Raw] = attrs.field(factory=dict)  # that are open: how they began
    defaults: dict[str, Raw] = attrs.field(factory=dict)
    parameters: dict[str, list[str]] = attrs.field(factory=dict)
    other_threads: int = 0  # records of threads that do not train
    left_out: set[str] = attrs.field(factory=set)  # functions that the other run does not record
    _sources: dict[int, str] = attrs.field(factory=dict)
    _documented: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    _thread: int | None = None  # the one that trains
    _is_step_sampled: bool = True
    _is_sampled: bool = True  # the window

    def is_recorded(self, window: Window) -> bool:
        """Whether the process was recorded in the window that was read last."""
        return self.window == window and self._is_sampled

    def has_recorded(self, step: int) -> bool:
        """Whether the process was recorded in a training step, which was not before its last."""
        return self.last_step == step and self._is_step_sampled

    def source(self, record: Raw) -> str | None:
        """Return "file:line" of the line of user code that a record names."""
        id_ = record.get("src")
        return None if id_ is None else self._sources.get(id_)

    def around(self, id_: int | None) -> tuple[str, ...]:
        """Return the names of a call and those around it, the outermost first."""
        names: list[str] = []
        while id_ is not None and (call := self.calls.get(id_)) is not None:
            names.append(call["function"])
            id_ = call.get("parent")
        return tuple(reversed(names))

    def take(self, records: Iterable[Raw], window: Window, scope: Scope) -> Script:
        """Read the records of a window."""
        self._enter(window)
        script = Script(window)
        for record in records:
            self._take(record, script, scope)
        return script

    def _enter(self, window: Window) -> None:
        if window.step != self.window.step:
            self._is_step_sampled = window.step < 0
        self.window = window
        self._is_sampled = self._is_step_sampled

    def _take(self, record: Raw, script: Script, scope: Scope) -> None:
        kind = record["kind"]
        if kind == "call_begin":
            self._begin(record, script, scope)
        elif kind in {"call_end", "call_error"}:
            if self.calls.pop(record["id"], None) is not None:
                script.tokens.append(END)
                script.records.append(record)
        elif kind == "var":
            script.changes.append((len(script.tokens), record))
        elif kind == "observe":
            self._look(record, script, scope)
        else:
            self._learn(kind, record, script)

    def _begin(self, record: Raw, script: Script, scope: Scope) -> None:
        function, thread = record["function"], record.get("thread")
        parent = record.get("parent")
        if thread != self._thread:
            if self._thread is None:
                self._thread = thread
            elif parent not in self.calls:
                self.other_threads += 1
                return
        documented = self._documented.get(function) or (function,)
        if not scope.has(documented):
            self.left_out.add(function)
            return
        self.calls[record["id"]] = record
        script.tokens.append(function)
        script.records.append(record)
        script.calls += 1

    def _look(self, record: Raw, script: Script, scope: Scope) -> None:
        function = record.get("function")
        if scope.has_look(function, self._documented.get(function or "", ())):
            script.tokens.append(f"{LOOK}{record['phase']} {function or ''}:{record['roles']}")
            script.records.append(record)

    def _learn(self, kind: str, record: Raw, script: Script) -> None:
        if kind == "step":
            self._thread = record.get("thread", self._thread)
            self._begin_step(record)
        elif kind == "function":
            name = record["name"]
            self._documented[name] = (name, *record.get("bases", ()))
            self.defaults[name] = record.get("defaults") or _NOTHING
            self.parameters[name] = list(record.get("parameters", ()))
        elif kind == "source":
            self._sources[record["id"]] = f"{record['file']}:{record['line']}"
        elif kind == "gap" and record["reason"] != _LOST:
            script.has_lost = True
            self.calls.clear()
        elif kind == "footer":
            self.has_ended = True

    def _begin_step(self, record: Raw) -> None:
        self._is_sampled = bool(record.get("sampled", True))
        if record.get("eval_step") is None:
            self._is_step_sampled = self._is_sampled
            self.last_step = record["step"]
            if self.first_step is None:
                self.first_step = self.last_step
