"""Builds small traces, for the tests of relations: plain files, as a training process writes them.

>>> import tempfile
>>> from pathlib import Path
>>> trace = TraceBuilder(Path(tempfile.mkdtemp()))
>>> rank = trace.rank()
>>> rank.step(0)
>>> with rank.call("torch.optim.SGD.step", of=optimizer("optimizer0")):
...     pass
>>> trace.write().name
'trace_r0_p1000.json'
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.records import SCHEMA, VERSION
from traincheck_trace_schema.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_FIRST_PID = 1000


def tensor(content: str = "0", *, zero: bool = False, shape: Sequence[int] = (2,)) -> Json:
    """Return how a tensor stands in a trace; equal `content`, equal tensor."""
    return {
        "tensor": {
            "shape": list(shape),
            "dtype": "float32",
            "device": "cpu",
            "digest": f"test:{content.encode().hex()}",
            "zero": zero,
            "finite": True,
        }
    }


def optimizer(name: str, type_: str = "torch.optim.SGD") -> Json:
    """Return how a tracked optimizer stands in a trace, as `self` of its methods."""
    return {"object": {"type": type_, "name": name}}


def train(  # noqa: PLR0913  each is a way in which runs differ
    rank: ShardBuilder,
    steps: int,
    *,
    parameters: Sequence[str] = ("model.fc1.weight", "model.fc2.weight"),
    unused: Sequence[str] = (),
    stuck: Sequence[str] = (),
    since: int = 0,
) -> None:
    """Add a training loop: each step clears the gradients, computes them and applies them.

    Args:
        rank: The shard to add to.
        steps: How many steps.
        parameters: Names of the parameters that the optimizer holds.
        unused: Names of parameters that it does not hold, and that get no gradient.
        stuck: Names of parameters that the optimizer no longer changes, though it should.
        since: The step from which on they are stuck.
    """
    rank.function("torch.optim.SGD.step", "torch.optim.Optimizer.step")
    rank.function("torch.optim.SGD.zero_grad", "torch.optim.Optimizer.zero_grad")
    for name in unused:
        rank.variable(name, data=tensor("start"), grad=None, requires_grad=True)
    model = {
        name: rank.variable(
            name, held_by=("optimizer0",), data=tensor("start"), grad=None, requires_grad=True
        )
        for name in parameters
    }
    source = rank.source("train.py", 10)
    rank.stage("training")
    for step in range(steps):
        rank.step(step)
        cleared: dict[str, Json] = {} if step == 0 else {"grad": None}
        _observed(rank, "torch.optim.SGD.zero_grad", dict.fromkeys(model, cleared), model, source)
        reached = {name: {"grad": tensor(f"g{step}")} for name in model}
        _observed(rank, "torch.Tensor.backward", reached, model, source)
        moving = [name for name in model if step < since or name not in stuck]
        moved = {name: {"data": tensor(f"d{step}")} for name in moving}
        _observed(rank, "torch.optim.SGD.step", moved, model, source)
        rank.observe("step_end")


def _observed(
    rank: ShardBuilder,
    function: str,
    changes: Mapping[str, Mapping[str, Json]],
    model: Mapping[str, BuiltVariable],
    source: int,
) -> None:
    """Add a call that changes parameters and is observed at its begin and end."""
    of = optimizer("optimizer0") if ".optim." in function else None
    with rank.call(function, of=of, src=source) as call:
        rank.observe("begin", call, function)
        for name, attributes in changes.items():
            if attributes:
                rank.change(model[name], during=call, **attributes)
        rank.observe("end", call, function)


@attrs.define(eq=False)
class TraceBuilder:
    """A run in the making: a shard for each rank, written into one folder."""

    folder: Path
    run_id: str = "run"
    world_size: int = 1
    tracker: str | None = "subclass"
    recording: Mapping[str, Json] = attrs.field(factory=lambda: {"mode": "full"})
    _shards: dict[int, ShardBuilder] = attrs.field(factory=dict, init=False)

    def rank(self, rank: int = 0) -> ShardBuilder:
        """Return the shard of a rank."""
        if rank not in self._shards:
            self._shards[rank] = ShardBuilder(self._header(rank))
        return self._shards[rank]

    def write(self, *, complete: bool = True) -> Path:
        """Write the shards; return the file of the lowest rank.

        Args:
            complete: Whether the processes ended cleanly: their shards then have a footer.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for rank, shard in sorted(self._shards.items()):
            path = self.folder / f"trace_r{rank}_p{_FIRST_PID + rank}.json"
            records = [*shard.records, shard.footer()] if complete else shard.records
            path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
            paths.append(path)
        return paths[0]

    def _header(self, rank: int) -> dict[str, Any]:
        return {
            "kind": "header",
            "schema": SCHEMA,
            "version": VERSION,
            "run_id": self.run_id,
            "host": "localhost",
            "pid": _FIRST_PID + rank,
            "role": "main",
            "rank": rank,
            "local_rank": rank,
            "world_size": self.world_size,
            "tracker": self.tracker,
            "clock": {"wall_ns": 0, "monotonic_ns": 0},
            "recording": dict(self.recording),
        }


@attrs.frozen(eq=False)
class BuiltVariable:
    """A variable that a shard told about."""

    id: int
    fields: Mapping[str, Any]


class ShardBuilder:
    """The records of one process, in order. Each method adds what a recorder would write."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.records: list[Mapping[str, Any]] = [header]
        self._at = {"step": -1, "eval_pass": 0, "eval_step": None, "micro_step": 0}
        self._open: list[int] = []
        self._ids = 0

    def step(self, step: int, *, sampled: bool = True) -> None:
        """Begin a training step."""
        self._at.update(step=step, eval_pass=0, eval_step=None)
        self._add("step", sampled=sampled)

    def eval_step(self, eval_step: int) -> None:
        """Begin a step of evaluation; step 0 begins a new pass."""
        began = int(eval_step == 0)
        self._at.update(eval_pass=(self._at["eval_pass"] or 0) + began, eval_step=eval_step)
        self._add("step", sampled=True)

    def stage(self, stage: str) -> None:
        """Begin a stage."""
        self._at["eval_step"] = None
        self._add("stage", stage=stage)

    def function(
        self,
        name: str,
        *bases: str,
        parameters: Sequence[str] = (),
        defaults: Mapping[str, Json] | None = None,
    ) -> None:
        """Tell of a function, of the base methods that it overrides, and of its defaults."""
        self._add(
            "function",
            name=name,
            bases=list(bases),
            parameters=list(parameters),
            defaults=dict(defaults or {}),
        )

    def source(self, file: str, line: int, function: str = "<module>") -> int:
        """Tell of a line of user code; return its id."""
        id_ = self._new_id()
        self._add("source", id=id_, file=file, line=line, function=function)
        return id_

    @contextmanager
    def call(
        self,
        function: str,
        args: Mapping[str, Json] | None = None,
        *,
        of: Json = None,
        raises: str | None = None,
        **fields: Json,
    ) -> Iterator[int]:
        """Record a call around what the block adds; give its id.

        Args:
            function: The function's name.
            args: Its arguments, if they were recorded.
            of: The object whose method it is.
            raises: The name of the exception that it raises; None: it returns.
            fields: Further fields of its first record, as `src` or `ctx`.
        """
        id_ = self._new_id()
        parent = self._open[-1] if self._open else None
        self._add(
            "call_begin", id=id_, parent=parent, function=function, args=args, self=of, **fields
        )
        self._open.append(id_)
        yield id_
        self._open.pop()
        if raises is None:
            self._add("call_end", id=id_, function=function)
        else:
            self._add("call_error", id=id_, function=function, exception=raises)

    def variable(
        self,
        *names: str,
        held_by: Sequence[str] = (),
        role: str = "parameter",
        type_: str = "torch.nn.Parameter",
        **attributes: Json,
    ) -> BuiltVariable:
        """Tell of a variable that appears, with all its attributes."""
        id_ = self._new_id()
        fields = {
            "names": list(names),
            "role": role,
            "type": type_,
            "storage": id_,
            "held_by": [{"optimizer": name, "group": 0} for name in held_by],
        }
        self._add("var", event="appeared", id=id_, attributes=attributes, **fields)
        return BuiltVariable(id_, fields)

    def change(
        self, variable: BuiltVariable, *, during: int | None = None, **attributes: Json
    ) -> None:
        """Tell that attributes of a variable changed, during a call if one is given."""
        self._add(
            "var",
            event="changed",
            id=variable.id,
            attributes=attributes,
            call=during,
            **variable.fields,
        )

    def observe(
        self,
        phase: str,
        call: int | None = None,
        function: str | None = None,
        *,
        roles: Sequence[str] = ("parameter",),
        attributes: Sequence[str] = ("data", "grad", "requires_grad"),
    ) -> None:
        """Tell that all variables of these roles were looked at here."""
        self._add(
            "observe",
            phase=phase,
            call=call,
            function=function,
            roles=list(roles),
            attributes=list(attributes),
        )

    def gap(self, reason: str = "sampling", count: int | None = None) -> None:
        """Tell that records are missing here."""
        self._add("gap", reason=reason, count=count)

    def footer(self) -> Mapping[str, Any]:
        """Return the footer that fits the records so far."""
        counts = Counter(str(record["kind"]) for record in self.records)
        return {"kind": "footer", "records": dict(counts), "gaps": counts["gap"]}

    def _add(self, kind: str, /, **fields: Any) -> None:
        seq = len(self.records)
        self.records.append({"kind": kind, "thread": 0, "seq": seq, **self._at, **fields})

    def _new_id(self) -> int:
        self._ids += 1
        return self._ids
