"""The records of a trace (document `traincheck.trace`), one attrs class for each kind.

The recorder writes plain dictionaries of this shape; these classes are for readers. A field that
has a default may be left out of a trace. `self_` stands for the field `self`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import attrs

from traincheck_trace_schema.values import Json

SCHEMA = "traincheck.trace"
VERSION = "1.0"

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

    interval: int = 1
    warm_up: int = 0


@attrs.frozen(kw_only=True)
class Recording:
    """What this process was asked to record; what is named nowhere here was not recorded."""

    mode: Literal["full", "plan"]
    plan_id: str | None = None
    functions: tuple[str, ...] = ()
    not_wrapped: Mapping[str, str] = attrs.field(factory=dict)  # function: why
    attributes: tuple[str, ...] = ()  # of variables
    observed: tuple[str, ...] = ()  # functions at whose begin and end the variables are looked at


@attrs.frozen(kw_only=True)
class Header:
    """Who wrote this shard, and how. Repeated where a fact changes; the last one holds."""

    kind: ClassVar[Literal["header"]] = "header"
    schema: str
    version: str
    run_id: str
    host: str
    pid: int
    role: Literal["main", "worker"]
    rank: int
    local_rank: int
    world_size: int
    restart: int = 0
    groups: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
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
    seq: int
    step: int
    eval_pass: int = 0
    eval_step: int | None = None
    micro_step: int = 0


@attrs.frozen(kw_only=True)
class FunctionRecord(Record):
    """A function, told once before its first call: its other names and its parameters."""

    kind: ClassVar[Literal["function"]] = "function"
    name: str
    bases: tuple[str, ...] = ()  # the public base methods that it overrides, nearest first
    aliases: tuple[str, ...] = ()  # other public names, and that by place of definition
    parameters: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class SourceRecord(Record):
    """A line of user code, told once; other records refer to it by `id`."""

    kind: ClassVar[Literal["source"]] = "source"
    id: int
    file: str
    line: int
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
    id: int
    parent: int | None = None
    function: str
    args: Mapping[str, Json] | None = None  # by parameter name; None: not requested
    self_: Json = None  # of a method; "self" in the trace
    ctx: Mapping[str, Json] = attrs.field(factory=dict)  # contexts that differ from the default
    src: int | None = None
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class CallEnd(Record):
    """A call returned. A record without `result` is one whose result was not requested."""

    kind: ClassVar[Literal["call_end"]] = "call_end"
    id: int
    function: str
    result: Json = None
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class CallError(Record):
    """A call raised."""

    kind: ClassVar[Literal["call_error"]] = "call_error"
    id: int
    function: str
    exception: str
    message: str = ""
    t_ns: int | None = None


@attrs.frozen(kw_only=True)
class Holder:
    """An optimizer, and its parameter group, that holds a variable."""

    optimizer: str
    group: int


@attrs.frozen(kw_only=True)
class VarRecord(Record):
    """A variable's state: all attributes at `baseline` and `appeared`, later those that changed.

    `call` is the observed call during which it changed; where there is none, `between` gives the
    `seq` of the last observation of what changed, and this record's own.
    """

    kind: ClassVar[Literal["var"]] = "var"
    event: VarEvent
    id: int
    names: tuple[str, ...]  # more than one: tied
    role: Role
    type: str
    storage: int
    held_by: tuple[Holder, ...] = ()
    attributes: Mapping[str, Json] = attrs.field(factory=dict)
    call: int | None = None
    between: tuple[int, int] | None = None
    src: int | None = None


@attrs.frozen(kw_only=True)
class Observe(Record):
    """At this point every variable of these roles was looked at, in these attributes."""

    kind: ClassVar[Literal["observe"]] = "observe"
    phase: Phase
    call: int | None = None
    function: str | None = None
    roles: tuple[Role, ...]
    attributes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Gap(Record):
    """Records that are missing here, how many (null: unknown) and why."""

    kind: ClassVar[Literal["gap"]] = "gap"
    reason: GapReason
    count: int | None = None
    detail: str = ""


@attrs.frozen(kw_only=True)
class Footer:
    """The process ended cleanly."""

    kind: ClassVar[Literal["footer"]] = "footer"
    records: Mapping[str, int]  # kind: how many
    gaps: int = 0
    seconds: float | None = None


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
