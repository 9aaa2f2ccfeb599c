"""Replays a run: each record of its stream, with what the records before it say about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from traincheck_relations.api import Call, Callee, Event, Gap, RawRecord, VariableState
from traincheck_trace_schema.reading import StreamItem, WindowEnd
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from traincheck_trace_schema.reading import Run, Shard
    from traincheck_trace_schema.values import Json

Occurrence: TypeAlias = Event | Gap | WindowEnd
# The function that is called; the process, window, stage, call, and variable before and after.
Followed: TypeAlias = """tuple[
    Callee | None,
    ProcessState, Window, str, Call | None, VariableState | None, VariableState | None,
]"""

_NO_DEFAULTS: Mapping[str, Json] = MappingProxyType({})
_CALL_ENDS = frozenset(("call_end", "call_error"))
_CALL_KINDS = _CALL_ENDS | {"call_begin"}
_FLAGS = frozenset(("requires_grad", "training"))
_NOT_LOST = "sampling"  # the reason of a gap after which the state is told anew


@attrs.define(eq=False)
class ProcessState:
    """What is known of one process at a moment of the stream, its rank by the last header."""

    process: int
    shard: str
    restart: int
    rank: int
    is_main: bool
    groups: Mapping[str, tuple[int, ...]]
    stage: str = "init"
    layout: int = 0
    calls: dict[int, Call] = attrs.field(factory=dict)
    live: dict[int, VariableState] = attrs.field(factory=dict)
    sources: dict[int, str] = attrs.field(factory=dict)
    ended: Window | None = None  # the last window that every rank has left
    _parameters: dict[int, tuple[str, ...]] = attrs.field(factory=dict)  # their names
    _model: str | None = None

    @classmethod
    def of(cls, process: int, shard: Shard) -> ProcessState:
        """Return the state of a process that begins with the header of its shard."""
        header = shard.raw_header
        return cls(
            process,
            shard.name,
            shard.header.restart,
            header["rank"],
            header["role"] == "main",
            _groups(header),
        )

    def take_header(self, header: Mapping[str, Any]) -> None:
        """Take note of a header that is told again: the process has learned its rank, say."""
        self.rank = header["rank"]
        self.is_main = header["role"] == "main"
        self.groups = _groups(header)

    def variables(self) -> Mapping[int, VariableState]:
        """Return the live variables of the process, by id."""
        return self.live

    def source(self, id_: int | None) -> str | None:
        """Return "file:line" of a source record of the process."""
        return None if id_ is None else self.sources.get(id_)

    def model(self) -> str | None:
        """Return what tells one model from another: a digest of the names of all parameters."""
        if self._model is None and self._parameters:
            names = {name for of in self._parameters.values() for name in of}
            self._model = sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
        return self._model

    def take_parameter(self, id_: int, names: tuple[str, ...]) -> None:
        """Take note of the names of a parameter; none: it is gone."""
        if self._parameters.get(id_, ()) != names:
            self._parameters[id_] = names
            if not names:
                del self._parameters[id_]
            self._model = None

    def is_over(self, window: Window) -> bool:
        """Whether the end of a window was told."""
        return self.ended is not None and window <= self.ended

    def forget(self) -> None:
        """Forget what records that were lost may have changed; it is told again as it changes."""
        self.calls.clear()
        self.live.clear()
        self.layout += 1

    def call(self, id_: int | None) -> Call | None:
        """Return an open call of the process."""
        return None if id_ is None else self.calls.get(id_)

    def world(self) -> Mapping[str, tuple[int, ...]]:
        """Return the named groups of ranks, `world` among them."""
        return self.groups


class Source(Protocol):
    """A run, as far as its stream was read; one that still grows may get more shards."""

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards; an item of the stream names its own by index."""


class Replay:
    """Turns the stream of a run into events. Bounded by open calls and live variables."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._callees: dict[str, Callee] = {}
        self._processes: list[ProcessState] = []

    def take(self, item: StreamItem | WindowEnd) -> Occurrence:
        """Return what the next item of the stream says."""
        if isinstance(item, WindowEnd):
            self.end(item)
            return item
        if item.record["kind"] == "gap":
            return self.gap(item)
        followed = self.follow(item)
        return Event(item.record["kind"], item.record, *followed[1:])

    def end(self, item: WindowEnd) -> None:
        """Take note that every rank has left a window."""
        for state in self._processes:
            state.ended = item.window

    def gap(self, item: StreamItem) -> Gap:
        """Take note that records are missing; return what a gap's record says."""
        state, reason = self._state(item.process), item.record["reason"]
        if reason != _NOT_LOST:
            state.forget()
        return Gap(reason=reason, rank=state.rank, process=item.process, window=item.window)

    def follow(self, item: StreamItem) -> Followed:
        """Bring the state up to a record that is no gap; return what is to be known of it.

        That is the function whose call it tells of (of a variable that changed: none), and what an
        event has besides its kind and its record, in the order of its fields. Most records are of
        concern to nobody, and an event for each would take longer than all else.
        """
        record = item.record
        kind = record["kind"]
        state = self._state(item.process)
        callee = call = before = after = None
        if kind == "call_begin":
            callee = self._callee(record["function"])
            parent = record.get("parent")
            call = Call(callee, None if parent is None else state.calls.get(parent), record)
            state.calls[record["id"]] = call
        elif kind in _CALL_ENDS:
            call = state.calls.pop(record["id"], None)
            callee = self.called_in(record, call)
        elif kind == "var":
            call = state.call(record.get("call"))
            before, after = _follow_variable(state, record)
        else:
            call = state.call(record.get("call"))
            callee = None if call is None else call.callee
            self._follow_fact(state, kind, record)
        return callee, state, item.window, state.stage, call, before, after

    def called_in(self, record: RawRecord, call: Call | None) -> Callee | None:
        """Return the function that the record of a call is about; of other records nothing.

        The begin of the call may have been lost.
        """
        if call is not None:
            return None if record["kind"] == "var" else call.callee
        return self._callee(record["function"]) if record["kind"] in _CALL_KINDS else None

    def _callee(self, function: str) -> Callee:
        """Return a function; of one that is not told of, nothing is known but its name."""
        callee = self._callees.get(function)
        if callee is None:
            callee = Callee(function, (function,), frozenset((function,)), _NO_DEFAULTS)
            self._callees[function] = callee
        return callee

    def _state(self, process: int) -> ProcessState:
        """Return the state of a process; the shards that are new are taken in."""
        while process >= len(self._processes):
            number = len(self._processes)
            self._processes.append(ProcessState.of(number, self._source.shards[number]))
        return self._processes[process]

    def _follow_fact(self, state: ProcessState, kind: str, record: dict[str, Any]) -> None:
        if kind == "stage":
            state.stage = record["stage"]
        elif kind == "source":
            state.sources[record["id"]] = f"{record['file']}:{record['line']}"
        elif kind == "function":
            self._learn(record)
        elif kind == "header":
            state.take_header(record)

    def _learn(self, record: dict[str, Any]) -> None:
        documented = (record["name"], *record.get("bases", ()))
        callee = Callee(
            record["name"],
            documented,
            frozenset((*documented, *record.get("aliases", ()))),
            record.get("defaults") or _NO_DEFAULTS,
        )
        known = self._callees.get(callee.name)
        # Each process tells of the function, mostly the same.
        if known is None or attrs.astuple(known, recurse=False) != attrs.astuple(
            callee, recurse=False
        ):
            self._callees[callee.name] = callee


def _follow_variable(
    state: ProcessState, record: dict[str, Any]
) -> tuple[VariableState | None, VariableState | None]:
    """Bring a variable up to a record; return what it was before and after."""
    id_ = record["id"]
    before = state.live.get(id_)
    if before is not None and record["event"] == "changed" and _tells_of_attributes(before, record):
        changed: Mapping[str, Json] = record.get("attributes", {})
        if not _FLAGS.isdisjoint(changed):
            state.layout += 1
        after = VariableState(
            id_,
            before.names,
            before.role,
            before.type,
            before.storage,
            before.holders,
            before.groups,
            {**before.attributes, **changed},
            before.told,
        )
        state.live[id_] = after
        return before, after
    state.layout += 1
    if record["event"] == "gone":
        state.live.pop(id_, None)
        state.take_parameter(id_, ())
        return before, None
    after = state.live[id_] = _told_anew(before, record)
    if after.role == "parameter":
        state.take_parameter(id_, after.names)
    return before, after


def replayed(run: Run) -> Iterator[Occurrence]:
    """Yield what the stream of a run that has ended says."""
    return map(Replay(run).take, run.stream())


def _tells_of_attributes(before: VariableState, record: RawRecord) -> bool:
    """Whether a record of a change says nothing else that was not known."""
    told = before.told
    return (
        record["names"] == told["names"]
        and record.get("held_by") == told.get("held_by")
        and record["storage"] == before.storage
        and record["type"] == before.type
        and record["role"] == before.role
    )


def _told_anew(before: VariableState | None, record: dict[str, Any]) -> VariableState:
    """Return the state of a variable of which a record tells all but attributes."""
    attributes: Mapping[str, Json] = record.get("attributes", {})
    if before is not None and record["event"] == "changed":
        attributes = {**before.attributes, **attributes}
    held_by = record.get("held_by", ())
    return VariableState(
        id=record["id"],
        names=tuple(record["names"]),
        role=record["role"],
        type=record["type"],
        storage=record["storage"],
        holders=frozenset(holder["optimizer"] for holder in held_by),
        groups=tuple(f"{holder['optimizer']}.group{holder['group']}" for holder in held_by),
        attributes=attributes,
        told=record,
    )


def _groups(header: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the rank groups of a header; the world is one even where it is not named."""
    world = tuple(range(header.get("world_size", 1)))
    return {"world": world} | {name: tuple(of) for name, of in header.get("groups", {}).items()}
