"""Recorded runs of a program: in full, by a plan, and with no step sampled."""

from __future__ import annotations

import random
import statistics
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs
import ujson
from overhead.programs import SCRIPTS

from traincheck_instrument.settings import RecordingSettings
from traincheck_relations.planning import plan_for
from traincheck_trace_schema.invariant_file import read_invariant_files
from traincheck_trace_schema.plan import FunctionPlan, Plan, VariablePlan
from traincheck_trace_schema.plan_file import write_plan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from overhead.programs import Workload

    from traincheck_trace_schema.records import Sampling

FUNCTIONS = 40
INVARIANTS = 100
NEVER = 1_000_000  # steps between two that are sampled
_ENTRY = """\
from traincheck_instrument.entry import run_program

run_program({settings!r})
"""
_DIGESTS = """\
import runpy

import torch
import xxhash
from torch.optim.optimizer import register_optimizer_step_post_hook


def digest(optimizer, *_):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for tensor in (parameter.detach(), parameter.grad):
                if tensor is not None:
                    xxhash.xxh3_64_hexdigest(tensor.numpy())


register_optimizer_step_post_hook(digest)
runpy.run_path({script!r}, run_name="__main__")
"""


@attrs.frozen
class TraceFigures:
    """What one rank's trace has of the median step, and in all."""

    calls: float
    looks: float
    records: float
    size_bytes: float
    all_records: int


def prepare(workload: Workload, folder: Path, plan: Plan | None, sampling: Sampling) -> Path:
    """Return the script that runs a program, recorded into `folder`."""
    folder.mkdir()
    plan_path = None
    if plan is not None:
        plan_path = folder / "plan.json"
        write_plan(plan_path, plan)
    settings = folder / "recording.json"
    RecordingSettings(
        script=workload.path,
        output_dir=folder,
        run_id=folder.name,
        models=workload.models,
        plan_path=plan_path,
        sampling=sampling,
        steps_from="source",
    ).write(settings)
    entry = folder / "entry.py"
    entry.write_text(_ENTRY.format(settings=str(settings)), encoding="utf-8")
    return entry


def prepare_floor(workload: Workload, folder: Path) -> Path:
    """Return the script that runs a program and only reads what any recording has to.

    That is each parameter and each gradient once a step; nothing of it is kept or written.
    """
    folder.mkdir()
    entry = folder / "entry.py"
    entry.write_text(_DIGESTS.format(script=str(workload.path)), encoding="utf-8")
    return entry


def plan_from(trace: Path) -> Plan:
    """Return a plan as a hundred sampled invariants would give.

    Its functions are drawn from those that were called, and filled up from those that were wrapped.
    Of all the result is recorded, of every third the arguments too.
    """
    records = list(_records(trace))
    called = sorted({each["function"] for each in records if each["kind"] == "call_begin"})
    wrapped = sorted(set(records[0]["recording"]["functions"]).difference(called))
    draw = random.Random(0)  # noqa: S311  the same functions in each run
    names = draw.sample(called, min(len(called), FUNCTIONS))
    names += draw.sample(wrapped, FUNCTIONS - len(names))
    functions = tuple(
        FunctionPlan(name=name, arguments=() if number % 3 else "all", result=True)
        for number, name in enumerate(names)
    )
    variables = (VariablePlan(role="parameter", attributes=("data", "grad", "requires_grad")),)
    observe = ("torch.optim.Optimizer.step", "torch.Tensor.backward")
    return Plan(id="sampled", functions=functions, variables=variables, observe=observe)


def plan_of_invariants(trace: Path) -> Plan:
    """Return the plan of a hundred invariants that a trace gives, or of all if there are fewer."""
    learnt = trace / "invariants.json"
    subprocess.run(
        [SCRIPTS / "traincheck-infer", "-f", trace, "-o", learnt], check=True, capture_output=True
    )
    invariants = read_invariant_files([learnt]).invariants
    draw = random.Random(0)  # noqa: S311  as above
    return plan_for(draw.sample(invariants, min(len(invariants), INVARIANTS)))


def figures(trace: Path) -> TraceFigures:
    """Count what a trace has of each training step, evaluation left out."""
    kinds: dict[str, Counter[int]] = {}
    counts: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    total = 0
    with _shard(trace).open("rb") as file:
        for line in file:
            total += 1
            record = ujson.loads(line)
            if record.get("step", -1) >= 0 and "eval_pass" not in record:
                kinds.setdefault(record["kind"], Counter())[record["step"]] += 1
                counts[record["step"]] += 1
                sizes[record["step"]] += len(line)
    steps = sorted(counts)[1:-2]  # the first tells everything once, the last may be cut short

    def median(count: Counter[int] | None) -> float:
        return statistics.median(count[step] for step in steps) if count else 0

    return TraceFigures(
        calls=median(kinds.get("call_begin")),
        looks=median(kinds.get("observe")),
        records=median(counts),
        size_bytes=median(sizes),
        all_records=total,
    )


def _records(trace: Path) -> Iterable[dict[str, Any]]:
    with _shard(trace).open("rb") as file:
        yield from map(ujson.loads, file)


def _shard(trace: Path) -> Path:
    for shard in trace.glob("trace_r0_*.json"):
        return shard
    raise FileNotFoundError(f"{trace}: nothing was recorded")
