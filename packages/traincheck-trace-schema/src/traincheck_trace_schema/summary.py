"""What is in the trace of a run, found in one pass over its stream."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.legacy.process import LegacyProcess
from traincheck_trace_schema.reading import StreamItem
from traincheck_trace_schema.records import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincheck_trace_schema.reading import Run, Shard

_NS = 1e9


@attrs.define(kw_only=True)
class Steps:
    """Steps that began: how many, how many of them were recorded, the first and the last."""

    count: int = 0
    sampled: int = 0
    first: int | None = None
    last: int | None = None

    def take(self, step: int, *, is_sampled: bool) -> None:
        """Count a step that begins."""
        self.count += 1
        self.sampled += is_sampled
        self.first = step if self.first is None else min(step, self.first)
        self.last = step if self.last is None else max(step, self.last)


@attrs.define(kw_only=True)
class ProcessSummary:
    """What one process wrote."""

    name: str
    header: Header  # the last one
    size: int  # bytes on disk
    records: Counter[str] = attrs.field(factory=Counter)  # kind: how many
    steps: Steps = attrs.field(factory=Steps)
    eval_steps: int = 0
    has_footer: bool = False
    seconds: float | None = None  # from its header to its footer, or to the last time told


@attrs.define
class StageSummary:
    """How often a stage began, and which steps began in it."""

    begun: int = 0
    steps: Steps = attrs.field(factory=Steps)
    eval_steps: int = 0


@attrs.define
class VariableSummary:
    """A variable, by name: what it is in the process that told of it first."""

    role: str
    shape: tuple[int, ...] | None = None
    attributes: set[str] = attrs.field(factory=set)
    changes: int = 0


@attrs.define(kw_only=True)
class TraceSummary:
    """What is in a trace. Stages are those of its first process, and so are their steps."""

    run_id: str
    format: str  # "traincheck.trace 1.0"
    processes: list[ProcessSummary]
    stages: dict[str, StageSummary] = attrs.field(factory=dict)
    functions: Counter[str] = attrs.field(factory=Counter)  # calls
    errors: Counter[str] = attrs.field(factory=Counter)  # calls of them that raised
    variables: dict[str, VariableSummary] = attrs.field(factory=dict)
    gaps: Counter[str] = attrs.field(factory=Counter)  # reason: records, at least
    incomplete_because: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def summarise(run: Run) -> TraceSummary:
    """Read the whole trace of a run once; memory depends on the names in it, not on its length.

    Raises:
        TraceError: the run was opened strictly, and is not as the format says.
    """
    summary = _Pass(run).take_all()
    summary.incomplete_because = run.incomplete_because()
    summary.notes = run.notes()
    return summary


class _Pass:
    """Goes through the stream of a run. Raw records have the form that `reading` checks."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stage: StageSummary | None = None  # in which the first process is
        self._summary = TraceSummary(
            run_id=run.run_id,
            format=_format(run.shards[0]),
            processes=[
                ProcessSummary(name=shard.name, header=shard.header, size=_size(shard))
                for shard in run.shards
            ],
        )
        self._rules: Mapping[str, Callable[[dict[str, Any], int], None]] = {
            "header": self._header,
            "stage": self._on_stage,
            "step": self._on_step,
            "call_begin": self._on_call,
            "call_error": self._on_error,
            "var": self._on_variable,
            "gap": self._on_gap,
            "footer": self._on_footer,
        }

    def take_all(self) -> TraceSummary:
        """Read the stream to its end."""
        for item in self._run.stream():
            if isinstance(item, StreamItem):
                self._take(item)
        return self._summary

    def _take(self, item: StreamItem) -> None:
        record = item.record
        kind = record["kind"]
        process = self._summary.processes[item.process]
        process.records[kind] += 1
        rule = self._rules.get(kind)
        if rule is not None:
            rule(record, item.process)
        time = record.get("t_ns")
        if type(time) is int:
            process.seconds = (time - process.header.clock.monotonic_ns) / _NS

    def _header(self, record: dict[str, Any], process: int) -> None:
        # Times of all headers are of one clock; the first tells when the process began.
        begun = self._summary.processes[process].header.clock
        header = attrs.evolve(structure(Header, record), clock=begun)
        self._summary.processes[process].header = header

    def _on_stage(self, record: dict[str, Any], process: int) -> None:
        if process == 0:
            self._stage = self._summary.stages.setdefault(record["stage"], StageSummary())
            self._stage.begun += 1

    def _on_step(self, record: dict[str, Any], process: int) -> None:
        places: list[ProcessSummary | StageSummary] = [self._summary.processes[process]]
        if self._stage and process == 0:
            places.append(self._stage)
        for place in places:
            if record.get("eval_step") is None:
                place.steps.take(record["step"], is_sampled=record.get("sampled") is not False)
            else:
                place.eval_steps += 1

    def _on_call(self, record: dict[str, Any], _: int) -> None:
        self._summary.functions[record["function"]] += 1

    def _on_error(self, record: dict[str, Any], _: int) -> None:
        self._summary.errors[record["function"]] += 1

    def _on_variable(self, record: dict[str, Any], _: int) -> None:
        name = record["names"][0]
        variable = self._summary.variables.get(name)
        if variable is None:
            variable = VariableSummary(role=record["role"])
            self._summary.variables[name] = variable
        attributes = record.get("attributes") or {}
        variable.attributes.update(attributes)
        variable.shape = variable.shape or _shape(attributes.get("data"))
        variable.changes += record["event"] == "changed"

    def _on_gap(self, record: dict[str, Any], _: int) -> None:
        count = record.get("count")
        self._summary.gaps[record["reason"]] += count if type(count) is int else 1

    def _on_footer(self, record: dict[str, Any], process: int) -> None:
        summary = self._summary.processes[process]
        summary.has_footer = True
        seconds = record.get("seconds")
        if isinstance(seconds, (int, float)):
            summary.seconds = seconds


def _format(shard: Shard) -> str:
    if isinstance(shard, LegacyProcess):
        return "TrainCheck 0.x"
    return f"{shard.header.schema} {shard.header.version}"


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape that a raw value has, if it is a tensor."""
    tensor = value.get("tensor") if isinstance(value, dict) else None
    shape = tensor.get("shape") if isinstance(tensor, dict) else None
    if isinstance(shape, list) and all(type(size) is int for size in shape):
        return tuple(shape)
    return None


def _size(shard: Shard) -> int:
    """Return the bytes on disk; a file that is gone has none."""
    paths = (
        [one.path for one in shard.sources] if isinstance(shard, LegacyProcess) else [shard.path]
    )
    size = 0
    for path in paths:
        with contextlib.suppress(OSError):
            size += path.stat().st_size
    return size
