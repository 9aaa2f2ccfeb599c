"""The rules between the records of a shard, which no JSON Schema can say, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from traincheck_trace_schema.constraints import shown
from traincheck_trace_schema.validation.calls import CallRules
from traincheck_trace_schema.validation.finding import Remarks
from traincheck_trace_schema.validation.recognition import KINDS
from traincheck_trace_schema.validation.variables import VariableRules
from traincheck_trace_schema.window import (
    AFTER_PASS,
    BEFORE_FIRST_STEP,
    BEFORE_PASS,
    Window,
    window_of,
)

LOSING: Final = frozenset({"disk", "queue", "encoding", "fault", "limit"})  # sampling loses nothing
_PLACED: Final = frozenset(KINDS) - {"header", "footer"}


@attrs.define
class ShardRules:
    """Follows the valid records of a shard. What was lost in a gap is not missed after it."""

    header: Mapping[str, Any] | None = None  # the last one
    last_ns: int | None = None  # the last time that was told
    counts: Counter[str] = attrs.field(factory=Counter)
    _has_begun: bool = attrs.field(init=False, default=False)
    _has_footer: bool = attrs.field(init=False, default=False)
    _is_damaged: bool = attrs.field(init=False, default=False)
    _seq: int = attrs.field(init=False, default=-1)
    _place: tuple[Any, ...] = attrs.field(init=False, default=())
    _window: Window = attrs.field(init=False, default=BEFORE_FIRST_STEP)
    _step: int = attrs.field(init=False, default=-1)  # the last one that is known to have begun
    _remarks: Remarks = attrs.field(init=False, factory=Remarks)
    _calls: CallRules = attrs.field(init=False)
    _variables: VariableRules = attrs.field(init=False)
    _rules: Mapping[str, Callable[[Mapping[str, Any]], None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._calls = CallRules(self._remarks)
        self._variables = VariableRules(self._remarks)
        self._rules = {
            "header": self._header,
            "footer": self._footer,
            "gap": self._gap,
            "function": self._calls.on_function,
            "source": self._calls.on_source,
            "call_begin": self._calls.on_begin,
            "call_end": self._calls.on_over,
            "call_error": self._calls.on_over,
            "var": self._var,
            "observe": self._observe,
        }

    def take(self, record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Return what is wrong with the place of a record among the others, and what seems so."""
        kind = record["kind"]
        self.counts[kind] += kind != "footer"
        if self._has_footer:
            self._remarks.problem(f"a record ({kind}) after the footer, which must be the last")
        if not self._has_begun and kind != "header":
            self._is_damaged = True
            self._remarks.problem(f"the first line must be the header; got a record ({kind})")
        self._has_begun = True
        if kind in _PLACED:
            self._order(record, kind)
        rule = self._rules.get(kind)
        if rule is not None:
            rule(record)
        return self._remarks.drain()

    def miss(self) -> None:
        """Take note of a line that is no record: others may refer to what it said."""
        self._has_begun = self._remarks.is_lossy = self._is_damaged = True

    def _order(self, record: Mapping[str, Any], kind: str) -> None:
        seq = record["seq"]
        if seq <= self._seq:
            self._remarks.problem(f"field 'seq' must rise; got {seq} after {self._seq}")
        self._seq = seq
        time = record.get("t_ns")
        if time is not None:
            self.last_ns = time
        place = record["step"], record.get("eval_pass", 0), record.get("eval_step")
        if place != self._place:  # seldom
            self._place = place
            self._enter(record, kind)

    def _enter(self, record: Mapping[str, Any], kind: str) -> None:
        """Go on to another window; from where a record stands, also if that is wrong."""
        window, before = window_of(record), self._window
        if window < before:
            is_one_step = window.step == before.step
            to, since = (_worded(each, is_alone=not is_one_step) for each in (window, before))
            self._remarks.problem(f"goes back to {to} from {since}")
        self._window = window
        # A gap may tell of steps that were left out, up to its own.
        begins = kind == "gap" or (kind == "step" and record.get("eval_step") is None)
        if window.step > self._step and not begins:
            self._remarks.hint(f"is in step {window.step}, which no step record began")
        self._step = window.step

    def _header(self, record: Mapping[str, Any]) -> None:
        tell, before = self._remarks.problem, self.header
        self.header = record
        self._variables.is_hashed = record.get("tensor_format", "hash") == "hash"
        if before and record["run_id"] != before["run_id"]:
            run_id = shown(record["run_id"])
            tell(f"field 'run_id' must stay {shown(before['run_id'])} in a shard; got {run_id}")
        world = record["world_size"]
        if record["rank"] >= world:
            tell(f"field 'rank' must be below 'world_size', {world}; got {record['rank']}")
        for name, ranks in record.get("groups", {}).items():
            if beyond := [rank for rank in ranks if rank >= world]:
                tell(f"group {name!r} has the rank {beyond[0]}, in a world of {world}")
        recording = record["recording"]
        if recording["mode"] == "plan" and not recording.get("plan_id"):
            tell("field 'recording.plan_id' must name the plan, since the mode is 'plan'")

    def _footer(self, record: Mapping[str, Any]) -> None:
        self._has_footer = True
        told = record["records"]
        if not self._is_damaged:
            for kind in sorted({*told, *self.counts}):
                count, read = told.get(kind, 0), self.counts[kind]
                if count != read:
                    self._remarks.problem(f"counts {count} records of kind {kind}; read {read}")
            gaps, read = record.get("gaps", self.counts["gap"]), self.counts["gap"]
            if gaps != read:
                self._remarks.problem(f"field 'gaps' must be {read}, the gap records; got {gaps}")
        self._calls.on_clean_end()
        self._variables.on_clean_end()

    def _gap(self, record: Mapping[str, Any]) -> None:
        self._remarks.is_lossy |= record["reason"] in LOSING

    def _var(self, record: Mapping[str, Any]) -> None:
        self._variables.on_var(record)
        self._calls.refer("call", record)
        self._calls.refer_to_source(record)

    def _observe(self, record: Mapping[str, Any]) -> None:
        self._calls.on_observe(record)
        self._variables.on_observe(record)


def _worded(window: Window, *, is_alone: bool) -> str:
    if is_alone:
        return f"step {window.step}"
    if window.eval_step == BEFORE_PASS:
        return f"step {window.step} before its evaluation"
    if window.eval_step == AFTER_PASS:
        return f"step {window.step} after pass {window.eval_pass} of evaluation"
    return f"step {window.step}, pass {window.eval_pass}, evaluation step {window.eval_step}"
