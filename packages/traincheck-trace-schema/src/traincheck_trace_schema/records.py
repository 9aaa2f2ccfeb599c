"""The records of a trace (document `traincheck.trace`), one attrs class for each kind.

The recorder writes plain dictionaries of this shape; these classes are for readers. A field that
has a default may be left out of a trace. `self_` stands for the field `self`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import attrs

from traincheck_trace_schema.constraints import (
    Count,
    Name,
    NotEmpty,
    Number,
    Ranks,
    StepNumber,
    Version1,
)
from traincheck_trace_schema.values import Json, Scalar, Value  # noqa: F401  Value is made of Json

SCHEMA: Final = "traincheck.trace"
VERSION: Final = "1.0"
SHARD_NAMES: Final = ("trace_*.json", "trace_*.json.gz")  # patterns of file names

Stage: TypeAlias = Literal[
    "init",
    "training",
    "evaluation",
    "inference",
    "testing",
    "checkpointing",
    "preprocessing",
    "postprocessing",
]
Role: TypeAlias = Literal["parameter", "buffer", "module", "optimizer", "scheduler", "scaler"]
VarEvent: TypeAlias = Literal["baseline", "appeared", "changed", "gone"]
Phase: TypeAlias = Literal["begin", "end", "step_end"]
GapReason: TypeAlias = Literal["sampling", "disk", "queue", "encoding", "fault", "limit"]


@attrs.frozen(kw_only=True)
class Clock:
    """Two clocks read together, in nanoseconds; they are never compared between ranks."""

    wall_ns: int
    monotonic_ns: int


@attrs.frozen(kw_only=True)
class Sampling:
    """A step is recorded if `step < warm_up` or `(step - warm_up) % interval == 0`."""

    interval: Number = 1
    warm_up: Count = 0
    budget: float | None = None  # percent of the run; the interval rises by itself to keep below


@attrs.frozen(kw_only=True)
class Recording:
    """What this process was asked to record; what is named nowhere here was not recorded."""

    mode: Literal["full", "plan"]
    plan_id: str | None = None
    functions: tuple[str, ...] = ()
    not_wrapped: Mapping[str, str] = attrs.field(factory=dict)  # function: why
    not_observed: Mapping[str, str] = attrs.field(factory=dict)  # as code compiled away: why
    attributes: tuple[str, ...] = ()  # of variables
    observed: tuple[str, ...] = ()  # functions at whose begin and end the variables are looked at


@attrs.frozen(kw_only=True)
class Header:
    """Who wrote this shard, and how. Repeated where a fact changes; the last one holds."""

    kind: ClassVar[Literal["header"]] = "header"
    schema: Literal["traincheck.trace"]
    version: Version1
    run_id: Name
    host: str
    pid: Count
    role: Literal["main", "worker"]
    rank: Count
    local_rank: Count
    world_size: Ranks
    node_rank: Count | None = None  # of the machine, where torchrun tells it
    restart: Count = 0
    groups: Mapping[str, tuple[Count, ...]] = attrs.field(factory=dict)
    versions: Mapping[str, str] = attrs.field(factory=dict)
    tracker: str | None = None
    tensor_format: Literal["hash", "stats", "full"] = "hash"
    sampling: Sampling = Sampling()
    steps_from: Literal["source", "hand", "model"] | None = None
    clock: Clock
    recording: Recording


@attrs.frozen(kw_only=True)
class Record:
    """What every record between header and footer says about where it stands.

    `seq` rises within the shard. `step` is the training step last begun, -1 before the first;
    `eval_pass` counts the passes of evaluation begun since; `eval_step` is null outside of a pass.
    """

    thread: int
    seq: Count
    step: StepNumber
    eval_pass: Count = 0
    eval_step: Count | None = None
    micro_step: Count = 0


@attrs.frozen(kw_only=True)
class FunctionRecord(Record):
    """A function, told once before its first call: its other names and its parameters.

    `defaults` has the plain values of those recorded arguments that a call may leave out.
    """

    kind: ClassVar[Literal["function"]] = "function"
    name: Name
    bases: tuple[str, ...] = ()  # the public base methods that it overrides, nearest first
    aliases: tuple[str, ...] = ()  # other public names, and that by place of definition
    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, Scalar] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SourceRecord(Record):
    """A line of user code, told once; other records refer to it by `id`."""

    kind: ClassVar[Literal["source"]] = "source"
    id: Count
    file: str
    line: Count
    function: str


@attrs.frozen(kw_only=True)
class StageRecord(Record):
    """The stage that begins."""

    kind: ClassVar[Literal["stage"]] = "stage"
    stage: Stage
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class StepRecord(Record):
    """The training step (or, with `eval_step`, the evaluation step) that begins."""

    kind: ClassVar[Literal["step"]] = "step"
    sampled: bool
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class CallBegin(Record):
    """An API call begins. `parent` is the nearest recorded call around it."""

    kind: ClassVar[Literal["call_begin"]] = "call_begin"
    id: Count
    parent: Count | None = None
    function: Name
    args: Mapping[str, Value] | None = None  # by parameter name; None: not requested
    self_: Value = None  # of a method; "self" in the trace
    ctx: Mapping[str, Value] = attrs.field(factory=dict)  # contexts that differ from the default
    src: Count | None = None
    stack: tuple[Count, ...] | None = None  # ids of source lines, nearest first; None: not asked
    t_ns: int | None = None


class Absent(enum.Enum):
    """Stands for a field that is not there, where null says something else."""

    NOT_REQUESTED = enum.auto()


@attrs.frozen(kw_only=True)
class CallEnd(Record):
    """A call returned; a result of `None` is not the same as one that was not requested."""

    kind: ClassVar[Literal["call_end"]] = "call_end"
    id: Count
    function: Name
    result: Value | Absent = Absent.NOT_REQUESTED
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class CallError(Record):
    """A call raised."""

    kind: ClassVar[Literal["call_error"]] = "call_error"
    id: Count
    function: Name
    exception: str
    message: str = ""
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class Holder:
    """An optimizer, and its parameter group, that holds a variable."""

    optimizer: str
    group: Count


@attrs.frozen(kw_only=True)
class VarRecord(Record):
    """A variable's state: all attributes at `baseline` and `appeared`, later those that changed.

    `call` is the observed call during which it changed; where there is none, `between` gives the
    `seq` of the last observation of what changed, and this record's own.
    """

    kind: ClassVar[Literal["var"]] = "var"
    event: VarEvent
    id: Count
    names: Annotated[tuple[Name, ...], NotEmpty()]  # more than one: tied
    role: Role
    type: str
    storage: Count
    held_by: tuple[Holder, ...] = ()
    attributes: Mapping[str, Value] = attrs.field(factory=dict)
    call: Count | None = None
    between: tuple[Count, Count] | None = None
    src: Count | None = None


@attrs.frozen(kw_only=True)
class Observe(Record):
    """At this point every variable of these roles was looked at, in these attributes."""

    kind: ClassVar[Literal["observe"]] = "observe"
    phase: Phase
    call: Count | None = None
    function: str | None = None
    roles: tuple[Role, ...]
    attributes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Gap(Record):
    """Records that are missing here, how many (null: unknown) and why."""

    kind: ClassVar[Literal["gap"]] = "gap"
    reason: GapReason
    count: Count | None = None
    detail: str = ""


@attrs.frozen(kw_only=True)
class Footer:
    """The process ended cleanly."""

    kind: ClassVar[Literal["footer"]] = "footer"
    records: Mapping[str, Count]  # kind: how many
    gaps: Count = 0
    seconds: float | None = None  # since the recording had begun
    recording_seconds: float | None = None  # of these, what recording took from the program
    starting_seconds: float | None = None  # before these: what it took to begin
    settled_seconds: float | None = None  # since the sampling interval rose for a budget
    settled_recording_seconds: float | None = None  # of these, what recording took


TraceRecord: TypeAlias = (
    Header
    | FunctionRecord
    | SourceRecord
    | StageRecord
    | StepRecord
    | CallBegin
    | CallEnd
    | CallError
    | VarRecord
    | Observe
    | Gap
    | Footer
)
