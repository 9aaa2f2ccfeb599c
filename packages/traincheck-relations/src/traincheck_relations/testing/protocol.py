"""Builds runs that call the functions of the training protocol in an order that a test gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.engine import Watch, propose
from traincheck_relations.testing.traces import ShardBuilder, TraceBuilder, optimizer
from traincheck_trace_schema.reading import open_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from traincheck_relations.api import Example, Relation
    from traincheck_trace_schema.invariants import Params

ZERO_GRAD = "torch.optim.Optimizer.zero_grad"
BACKWARD = "torch.Tensor.backward"
CLIP = "torch.nn.utils.clip_grad_norm_"
STEP = "torch.optim.Optimizer.step"
SCHEDULER_STEP = "torch.optim.lr_scheduler.LRScheduler.step"
UNSCALE = "torch.GradScaler.unscale_"
_FUNCTIONS: Mapping[str, str] = {
    "zero_grad": ZERO_GRAD,
    "module_zero_grad": "torch.nn.Module.zero_grad",
    "backward": BACKWARD,
    "clip": CLIP,
    "step": "torch.optim.SGD.step",
    "scheduler": SCHEDULER_STEP,
    "unscale": UNSCALE,
    "scaler_step": "torch.GradScaler.step",
    "forward": "torch.nn.Linear.forward",
    "train": "torch.nn.Module.train",
    "eval": "torch.nn.Module.eval",
}
_METHODS_OF_OPTIMIZER = ("zero_grad", "step")
_GIVEN_OPTIMIZER = ("unscale", "scaler_step")


def new_rank(trace: TraceBuilder) -> ShardBuilder:
    """Begin a shard that tells what its optimizer overrides."""
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", STEP)
    return rank


def call(
    rank: ShardBuilder,
    what: str,
    owner: str = "optimizer0",
    *,
    src: int | None = None,
    raises: str | None = None,
) -> None:
    """Record a call by a short name, as "step"; "step>backward" makes another inside it."""
    outer, _, inner = what.partition(">")
    of = optimizer(owner) if outer in _METHODS_OF_OPTIMIZER else None
    args = {"optimizer": optimizer(owner)} if outer in _GIVEN_OPTIMIZER else None
    with rank.call(_FUNCTIONS[outer], args, of=of, raises=raises, src=src):
        if inner:
            call(rank, inner, owner)


def loop(rank: ShardBuilder, bodies: Iterable[Sequence[str]], *, first: int = 0) -> None:
    """Record training steps, each with these calls in turn; "1:step" is one of optimizer1.

    Each call of a body stands in a line of its own.
    """
    for number, body in enumerate(bodies, start=first):
        rank.step(number)
        for line, each in enumerate(body):
            owner, _, what = each.rpartition(":")
            call(rank, what, f"optimizer{owner or 0}", src=line)


def examples(
    trace: TraceBuilder, relation: Relation, *params: Params, complete: bool = True
) -> list[Example]:
    """Return the examples that a relation gives of params."""
    trace.write(complete=complete)
    watch = Watch(open_run([trace.folder]), {relation.name: relation}, {relation.name: params})
    found = [example for _, example in watch]
    if watch.faults:
        raise AssertionError(watch.faults)
    return found


def verdicts(trace: TraceBuilder, relation: Relation, *params: Params) -> list[tuple[int, bool]]:
    """Return of each example the step and whether it held."""
    return [(one.at.window.step, one.held) for one in examples(trace, relation, *params)]


def broken(trace: TraceBuilder, relation: Relation, *params: Params) -> list[int]:
    """Return the steps of the examples that did not hold."""
    return [step for step, held in verdicts(trace, relation, *params) if not held]


def proposals(trace: TraceBuilder, relation: Relation) -> set[Params]:
    """Return what a relation proposes."""
    trace.write()
    found = propose(open_run([trace.folder]), {relation.name: relation})
    if found.faults:
        raise AssertionError(found.faults)
    return set(found.candidates[relation.name])
