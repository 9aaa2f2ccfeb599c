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
_TIMES = (  # of a footer
    *("seconds", "recording_seconds", "starting_seconds"),
    *("settled_seconds", "settled_recording_seconds"),
)


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


@attrs.define
class StageSummary:
    """How often a stage began, and which steps began in it."""

    begun: int = 0
    steps: Steps = attrs.field(factory=Steps)
    eval_steps: int = 0


@attrs.define(kw_only=True)
class ProcessSummary:
    """What one process wrote."""

    name: str
    first_header: Header
    header: Header  # the last one
    size: int  # bytes on disk
    records: Counter[str] = attrs.field(factory=Counter)  # kind: how many
    steps: Steps = attrs.field(factory=Steps)
    eval_steps: int = 0
    eval_sampled: int = 0  # of these, those that were recorded
    stages: dict[str, StageSummary] = attrs.field(factory=dict)
    has_footer: bool = False
    seconds: float | None = None  # from its header to its footer, or to the last time told
    recording_seconds: float | None = None  # of those, what recording took
    starting_seconds: float | None = None  # before those, what it took to begin
    settled_seconds: float | None = None  # of those, the ones since the interval last rose
    settled_recording_seconds: float | None = None

    @property
    def recording_share(self) -> float | None:
        """The part of its time that recording took, if that is known."""
        return _share(self.recording_seconds, self.seconds)

    @property
    def settled_share(self) -> float | None:
        """The part that recording took since the interval last rose for a budget, if it did."""
        return _share(self.settled_recording_seconds, self.settled_seconds)


@attrs.define
class VariableSummary:
    """A variable, by name: what it is in the process that told of it first."""

    role: str
    shape: tuple[int, ...] | None = None
    attributes: set[str] = attrs.field(factory=set)
    changes: int = 0


@attrs.define(kw_only=True)
class TraceSummary:
    """What is in a trace."""

    run_id: str
    format: str  # "traincheck.trace 1.0"
    processes: list[ProcessSummary]
    functions: Counter[str] = attrs.field(factory=Counter)  # calls
    errors: Counter[str] = attrs.field(factory=Counter)  # calls of them that raised
    variables: dict[str, VariableSummary] = attrs.field(factory=dict)
    gaps: Counter[str] = attrs.field(factory=Counter)  # reason: records, at least
    incomplete_because: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lead(self) -> ProcessSummary:
        """The process that speaks for all: the main one of the least rank that began a step.

        A rank may have processes that only start others, and wait for them; and these learn their
        rank, and that they are of one, from a later header.
        """
        return min(
            (each for each in self.processes if each.steps.count or each.eval_steps),
            key=lambda each: (each.header.role != "main", each.header.rank),
            default=self.processes[0],
        )

    @property
    def costliest(self) -> ProcessSummary | None:
        """The process of which recording took the largest part, if any tells."""
        known = [each for each in self.processes if each.recording_share is not None]
        return max(known, key=lambda each: each.recording_share or 0.0, default=None)

    @property
    def not_wrapped(self) -> dict[str, str]:
        """The functions whose calls could not be recorded in some process, and why."""
        recordings = [each.header.recording for each in reversed(self.processes)]
        return {what: why for each in recordings for what, why in each.not_wrapped.items()}

    @property
    def not_observed(self) -> dict[str, str]:
        """What else could not be recorded in some process, and why."""
        recordings = [each.header.recording for each in reversed(self.processes)]
        return {what: why for each in recordings for what, why in each.not_observed.items()}


def summarise(run: Run) -> TraceSummary:
    """Read the whole trace of a run once; memory depends on the names in it, not on its length.

    Raises:
        TraceError: the run was opened strictly, and is not as the format says.
    """
    tally = Tally(run)
    for item in run.stream():
        if isinstance(item, StreamItem):
            tally.take(item.record, item.process)
    summary = tally.summary
    summary.incomplete_because = run.incomplete_because()
    summary.notes = run.notes()
    return summary


class Tally:
    """Sums up the records of a run. They are raw, of the form that `reading` checks."""

    def __init__(self, run: Run) -> None:
        self._stages: dict[int, StageSummary] = {}  # in which each process is
        self.summary = TraceSummary(
            run_id=run.run_id,
            format=_format(run.shards[0]),
            processes=[
                ProcessSummary(
                    name=shard.name,
                    first_header=shard.header,
                    header=shard.header,
                    size=_size(shard),
                )
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

    def take(self, record: dict[str, Any], process: int) -> None:
        """Count a record of the process with this index in `Run.shards`.

        Raises:
            TraceError: it is a header with a wrong field.
        """
        kind = record["kind"]
        summary = self.summary.processes[process]
        summary.records[kind] += 1
        rule = self._rules.get(kind)
        if rule is not None:
            rule(record, process)
        time = record.get("t_ns")
        if type(time) is int:
            summary.seconds = (time - summary.header.clock.monotonic_ns) / _NS

    def _header(self, record: dict[str, Any], process: int) -> None:
        # Times of all headers are of one clock; the first tells when the process began.
        begun = self.summary.processes[process].header.clock
        header = attrs.evolve(structure(Header, record), clock=begun)
        self.summary.processes[process].header = header

    def _on_stage(self, record: dict[str, Any], process: int) -> None:
        stages = self.summary.processes[process].stages
        self._stages[process] = stages.setdefault(record["stage"], StageSummary())
        self._stages[process].begun += 1

    def _on_step(self, record: dict[str, Any], process: int) -> None:
        own, stage = self.summary.processes[process], self._stages.get(process)
        is_sampled = record.get("sampled") is not False
        is_training = record.get("eval_step") is None
        for place in (own, stage) if stage else (own,):
            if is_training:
                place.steps.take(record["step"], is_sampled=is_sampled)
            else:
                place.eval_steps += 1
        own.eval_sampled += is_sampled and not is_training

    def _on_call(self, record: dict[str, Any], _: int) -> None:
        self.summary.functions[record["function"]] += 1

    def _on_error(self, record: dict[str, Any], _: int) -> None:
        self.summary.errors[record["function"]] += 1

    def _on_variable(self, record: dict[str, Any], _: int) -> None:
        name = record["names"][0]
        variable = self.summary.variables.get(name)
        if variable is None:
            variable = VariableSummary(role=record["role"])
            self.summary.variables[name] = variable
        attributes = record.get("attributes") or {}
        variable.attributes.update(attributes)
        variable.shape = variable.shape or _shape(attributes.get("data"))
        variable.changes += record["event"] == "changed"

    def _on_gap(self, record: dict[str, Any], _: int) -> None:
        count = record.get("count")
        self.summary.gaps[record["reason"]] += count if type(count) is int else 1

    def _on_footer(self, record: dict[str, Any], process: int) -> None:
        summary = self.summary.processes[process]
        summary.has_footer = True
        for name in _TIMES:
            seconds = record.get(name)
            if isinstance(seconds, (int, float)):
                setattr(summary, name, seconds)


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


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
