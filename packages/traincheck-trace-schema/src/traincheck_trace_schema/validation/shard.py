"""The rules between the records of a shard, which no JSON Schema can say, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from traincheck_trace_schema.validation.ids import SeenIds
from traincheck_trace_schema.validation.recognition import KINDS
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window, window_of

LOSING: Final = frozenset({"disk", "queue", "encoding", "fault", "limit"})  # sampling loses nothing
_PLACED: Final = frozenset(KINDS) - {"header", "footer"}


@attrs.define
class ShardRules:
    """Follows the valid records of a shard. What was lost in a gap is not missed after it."""

    has_header: bool = False
    has_footer: bool = False
    is_lossy: bool = False
    counts: Counter[str] = attrs.field(factory=Counter)
    _is_damaged: bool = attrs.field(init=False, default=False)
    _run_id: str = attrs.field(init=False, default="")
    _seq: int = attrs.field(init=False, default=-1)
    _place: tuple[Any, ...] = attrs.field(init=False, default=())
    _window: Window = attrs.field(init=False, default=BEFORE_FIRST_STEP)
    _open: dict[int, str] = attrs.field(init=False, factory=dict)  # call: function
    _calls: SeenIds = attrs.field(init=False, factory=SeenIds)
    _sources: set[int] = attrs.field(init=False, factory=set)
    _functions: set[str] = attrs.field(init=False, factory=set)
    _variables: set[int] = attrs.field(init=False, factory=set)
    _found: list[str] = attrs.field(init=False, factory=list)
    _rules: Mapping[str, Callable[[Mapping[str, Any]], None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rules = {
            "header": self._header,
            "footer": self._footer,
            "gap": self._gap,
            "function": self._function,
            "source": self._source,
            "call_begin": self._call_begin,
            "call_end": self._call_over,
            "call_error": self._call_over,
            "var": self._var,
            "observe": self._observe,
        }

    def take(self, record: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with the place of a record among the others."""
        kind = record["kind"]
        self._found = []
        self.counts[kind] += kind != "footer"
        if self.has_footer:
            self._tell(f"a record ({kind}) after the footer, which must be the last line")
        if not self.has_header and kind != "header":
            self.has_header = True
            self._tell("field 'kind' must be 'header' in the first line")
        if kind in _PLACED:
            self._order(record)
        rule = self._rules.get(kind)
        if rule is not None:
            rule(record)
        return self._found

    def miss(self) -> None:
        """Take note of a line that is no record: others may refer to what it said."""
        self.has_header = self.is_lossy = self._is_damaged = True

    def _tell(self, problem: str) -> None:
        self._found.append(problem)

    def _order(self, record: Mapping[str, Any]) -> None:
        seq = record["seq"]
        if seq <= self._seq:
            self._tell(f"field 'seq' must rise; got {seq} after {self._seq}")
        self._seq = max(seq, self._seq)
        place = record["step"], record.get("eval_pass", 0), record.get("eval_step")
        if place != self._place:  # seldom
            self._place = place
            window = window_of(record)
            if window < self._window:
                self._tell(f"goes back to {_worded(window)} from {_worded(self._window)}")
            self._window = max(window, self._window)

    def _header(self, record: Mapping[str, Any]) -> None:
        if self._run_id and record["run_id"] != self._run_id:
            self._tell(
                f"field 'run_id' must stay {self._run_id!r} in a shard; got {record['run_id']!r}"
            )
        self.has_header, self._run_id = True, record["run_id"]

    def _footer(self, record: Mapping[str, Any]) -> None:
        self.has_footer = True
        told = record["records"]
        for kind in sorted({*told, *self.counts}):
            if told.get(kind, 0) != self.counts[kind] and not self._is_damaged:
                self._tell(
                    f"counts {told.get(kind, 0)} records of kind {kind}; read {self.counts[kind]}"
                )

    def _gap(self, record: Mapping[str, Any]) -> None:
        self.is_lossy |= record["reason"] in LOSING

    def _function(self, record: Mapping[str, Any]) -> None:
        if record["name"] in self._functions:
            self._tell(f"tells the function {record['name']!r} again")
        self._functions.add(record["name"])

    def _source(self, record: Mapping[str, Any]) -> None:
        if record["id"] in self._sources:
            self._tell(f"tells the source {record['id']} again")
        self._sources.add(record["id"])

    def _call_begin(self, record: Mapping[str, Any]) -> None:
        call, function = record["id"], record["function"]
        if not self._calls.add(call):
            self._tell(f"field 'id' must be new; a call {call} began before")
        if function not in self._functions and not self.is_lossy:
            self._functions.add(function)  # once is enough
            self._tell(f"no function record told {function!r} before its first call")
        self._open_call("parent", record)
        self._known_source(record)
        self._open[call] = function

    def _call_over(self, record: Mapping[str, Any]) -> None:
        call, function = record["id"], record["function"]
        begun = self._open.pop(call, None)
        if begun is None and not self.is_lossy:
            self._tell(f"ends the call {call}, which is not open")
        elif begun is not None and begun != function:
            self._tell(f"ends the call {call} of {begun!r} as one of {function!r}")

    def _var(self, record: Mapping[str, Any]) -> None:
        variable, event = record["id"], record["event"]
        if event in {"baseline", "appeared"}:
            self._variables.add(variable)
        elif variable not in self._variables and not self.is_lossy:
            self._tell(f"variable {variable} is {event} before a record said that it is there")
        if event == "gone":
            self._variables.discard(variable)
        between = record.get("between")
        if between and not between[0] < between[1]:
            self._tell(f"field 'between' must rise; got {between}")
        self._open_call("call", record)
        self._known_source(record)

    def _observe(self, record: Mapping[str, Any]) -> None:
        self._open_call("call", record)

    def _open_call(self, field: str, record: Mapping[str, Any]) -> None:
        call = record.get(field)
        if call is not None and call not in self._open and not self.is_lossy:
            self._tell(f"field {field!r} must be a call that is open; got {call}")

    def _known_source(self, record: Mapping[str, Any]) -> None:
        source = record.get("src")
        if source is not None and source not in self._sources and not self.is_lossy:
            self._sources.add(source)  # once is enough
            self._tell(f"no source record told the source {source} before")


def _worded(window: Window) -> str:
    return f"step {window.step}, pass {window.eval_pass}"
