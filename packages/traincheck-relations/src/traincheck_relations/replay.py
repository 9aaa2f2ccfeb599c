"""Replays a run: each record of its stream, with what the records before it say about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import attrs

from traincheck_relations.api import Call, Event, Gap, VariableState
from traincheck_trace_schema.reading import StreamItem, WindowEnd
from traincheck_trace_schema.window import BEFORE_FIRST_STEP, Window

if TYPE_CHECKING:
    from traincheck_trace_schema.reading import Run, Shard
    from traincheck_trace_schema.values import Json

Occurrence: TypeAlias = Event | Gap | WindowEnd

_NO_DEFAULTS: Mapping[str, Json] = MappingProxyType({})
_NOT_LOST = "sampling"  # the reason of a gap after which the state is told anew


@attrs.define(eq=False)
class ProcessState:
    """What is known of one process at a moment of the stream, its rank by the last header."""

    shard: str
    restart: int
    rank: int
    is_main: bool
    groups: Mapping[str, tuple[int, ...]]
    stage: str = "init"
    window: Window = BEFORE_FIRST_STEP
    calls: dict[int, Call] = attrs.field(factory=dict)
    live: dict[int, VariableState] = attrs.field(factory=dict)
    sources: dict[int, str] = attrs.field(factory=dict)
    ended: Window | None = None  # the last window that every rank has left
    _parameters: dict[int, tuple[str, ...]] = attrs.field(factory=dict)  # their names
    _model: str | None = None

    @classmethod
    def of(cls, shard: Shard) -> ProcessState:
        """Return the state of a process that begins with the header of its shard."""
        header = shard.raw_header
        is_main = header["role"] == "main"
        return cls(
            shard.name, shard.header.restart, header["rank"], is_main, groups=_groups(header)
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
        self._documented: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._defaults: dict[str, Mapping[str, Json]] = {}
        self._processes: list[ProcessState] = []

    def take(self, item: StreamItem | WindowEnd) -> Occurrence:
        """Return what the next item of the stream says."""
        if isinstance(item, StreamItem):
            return self._occurrence(item)
        for state in self._processes:
            state.ended = item.window
        return item

    def _open(self, process: int) -> None:
        """Take in the shards that are new, up to that of a process."""
        new = self._source.shards[len(self._processes) : process + 1]
        self._processes += map(ProcessState.of, new)

    def _occurrence(self, item: StreamItem) -> Event | Gap:
        record: dict[str, Any] = item.record
        kind = record["kind"]
        if item.process >= len(self._processes):
            self._open(item.process)
        state = self._processes[item.process]
        state.window = item.window
        if kind == "gap":
            if record["reason"] != _NOT_LOST:
                state.forget()
            return Gap(
                reason=record["reason"],
                rank=state.rank,
                process=item.process,
                window=state.window,
            )
        call, before, after = self._follow(state, kind, record)
        return Event(
            kind=kind,
            record=record,
            shard=state.shard,
            rank=state.rank,
            process=item.process,
            restart=state.restart,
            is_main=state.is_main,
            window=item.window,
            stage=state.stage,
            call=call,
            before=before,
            after=after,
            run=state,
        )

    def _follow(
        self, state: ProcessState, kind: str, record: dict[str, Any]
    ) -> tuple[Call | None, VariableState | None, VariableState | None]:
        """Bring the state up to this record; return its call and the variable before and after."""
        if kind == "call_begin":
            return self._begin(state, record), None, None
        if kind in ("call_end", "call_error"):
            return state.calls.pop(record["id"], None), None, None
        if kind == "var":
            before = state.live.pop(record["id"], None)
            after = None if record["event"] == "gone" else _updated(before, record)
            if after is not None:
                state.live[after.id] = after
            if record["role"] == "parameter":
                state.take_parameter(record["id"], () if after is None else after.names)
            return state.call(record.get("call")), before, after
        if kind == "stage":
            state.stage = record["stage"]
        elif kind == "source":
            state.sources[record["id"]] = f"{record['file']}:{record['line']}"
        elif kind == "function":
            self._learn(record)
        elif kind == "header":
            state.take_header(record)
        return state.call(record.get("call")), None, None

    def _learn(self, record: dict[str, Any]) -> None:
        documented = (record["name"], *record.get("bases", ()))
        self._documented[record["name"]] = documented
        self._names[record["name"]] = frozenset((*documented, *record.get("aliases", ())))
        self._defaults[record["name"]] = record.get("defaults") or _NO_DEFAULTS

    def _begin(self, state: ProcessState, record: dict[str, Any]) -> Call:
        function = record["function"]
        call = Call(
            id=record["id"],
            function=function,
            documented=self._documented.get(function) or (function,),
            names=self._names.get(function) or frozenset((function,)),
            parent=state.call(record.get("parent")),
            begin=record,
            defaults=self._defaults.get(function, _NO_DEFAULTS),
        )
        state.calls[call.id] = call
        return call


def replayed(run: Run) -> Iterator[Occurrence]:
    """Yield what the stream of a run that has ended says."""
    return map(Replay(run).take, run.stream())


def _updated(before: VariableState | None, record: dict[str, Any]) -> VariableState:
    attributes: Mapping[str, Json] = record.get("attributes", {})
    if before is not None and record["event"] == "changed":
        attributes = {**before.attributes, **attributes}
    return VariableState(
        id=record["id"],
        names=tuple(record["names"]),
        role=record["role"],
        type=record["type"],
        storage=record["storage"],
        holders=frozenset(holder["optimizer"] for holder in record.get("held_by", ())),
        attributes=attributes,
    )


def _groups(header: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the rank groups of a header; the world is one even where it is not named."""
    world = tuple(range(header.get("world_size", 1)))
    return {"world": world} | {name: tuple(of) for name, of in header.get("groups", {}).items()}
