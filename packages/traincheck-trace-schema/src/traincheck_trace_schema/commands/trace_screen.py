"""What `traincheck-schema show` tells of a trace."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from traincheck_trace_schema.commands.screen import counted, duration, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_trace_schema.commands.screen import Screen
    from traincheck_trace_schema.commands.table import Cell
    from traincheck_trace_schema.records import Header, Sampling
    from traincheck_trace_schema.summary import (
        ProcessSummary,
        Steps,
        TraceSummary,
        VariableSummary,
    )


def trace_lines(trace: TraceSummary, screen: Screen) -> Iterator[str]:
    """Yield the lines about the trace of a run."""
    yield f"Trace of run {trace.run_id}"
    yield from screen.facts(_facts(trace))
    yield from screen.section(
        "Processes",
        ("rank", "role", "host", "pid", "restart", "steps", "records", "size", "time", "end"),
        [_process(each) for each in trace.processes],
    )
    yield from screen.section(
        "Stages",
        ("stage", "begun", "steps", "range", "evaluation steps"),
        [
            (name, each.begun, each.steps.count, _range(each.steps), each.eval_steps)
            for name, each in trace.lead.stages.items()
        ],
    )
    yield from screen.section(
        "Functions",
        ("calls", "raised", "function"),
        [
            (count, trace.errors[name] or None, name)
            for name, count in trace.functions.most_common()
        ],
    )
    yield from screen.section(
        "Variables",
        ("role", "number", "changes", "shapes", "attributes"),
        _variables(trace),
    )
    yield from screen.section(
        "Gaps", ("records", "reason"), [(count, name) for name, count in trace.gaps.most_common()]
    )
    yield from screen.section(
        "Not observed",
        ("what", "why"),
        list({**trace.not_wrapped, **trace.not_observed}.items()),
        is_last_whole=True,
    )
    if trace.incomplete_because or trace.notes:
        yield ""
    yield from screen.notes("incomplete", trace.incomplete_because)
    yield from screen.notes("note", trace.notes)


def _facts(trace: TraceSummary) -> dict[str, str]:
    header, steps = trace.lead.header, trace.lead.steps
    records = sum(sum(each.records.values()) for each in trace.processes)
    facts = {
        "size": f"{counted(records, 'record')}, {size(sum(e.size for e in trace.processes))}",
        "steps": _range(steps) + (f", {steps.sampled:,} of them recorded" if steps.count else ""),
        "sampling": sampling(header.sampling),
        "recording": _recording(header),
        "cost": cost(trace),
        "tracker": header.tracker or "none",
        "tensors": header.tensor_format,
        "format": trace.format,
        "versions": ", ".join(f"{name} {version}" for name, version in header.versions.items()),
    }
    return {label: text for label, text in facts.items() if text}


def sampling(policy: Sampling) -> str:
    """Say which steps are recorded."""
    if policy.interval == 1:
        told = "every step"
    elif policy.warm_up:
        told = f"the first {counted(policy.warm_up, 'step')}, then 1 of {policy.interval:,}"
    else:
        told = f"1 of {counted(policy.interval, 'step')}"
    if policy.budget is None:
        return told
    return f"{told}; fewer where recording would take more than {policy.budget:g}% of the time"


def cost(trace: TraceSummary) -> str:
    """Say what recording took, of the process that felt it most; empty if that is not known."""
    process = trace.costliest
    if process is None:
        return ""
    seconds, share = process.recording_seconds or 0.0, process.recording_share or 0.0
    rank = "" if process.header.world_size == 1 else f"; rank {process.header.rank}, the most"
    times = f"{duration(seconds)} of {duration(process.seconds or 0.0)}{rank}"
    start = process.starting_seconds
    begin = "" if start is None else f", and {duration(start)} to begin"
    return f"{share:.1%} of the run ({times}){begin}{_budget(trace)}"


def _budget(trace: TraceSummary) -> str:
    """Say how far the interval rose for the budget, where it rose furthest, and what came of it."""
    process = max(trace.processes, key=lambda each: each.header.sampling.interval)
    before, after = process.first_header.sampling.interval, process.header.sampling.interval
    if after <= before:
        return ""
    budget = f"the budget of {process.header.sampling.budget:g}%"
    share = process.settled_share
    if share is None:
        return f"; with the first steps, since which 1 of {after:,} is recorded, for {budget}"
    return f"; {share:.1%} since 1 of {after:,} steps is recorded, for {budget}"


def _recording(header: Header) -> str:
    recording = header.recording
    what = f"plan {recording.plan_id}" if recording.mode == "plan" else "in full"
    told = [counted(len(recording.functions), "function")] if recording.functions else []
    if recording.attributes:
        told.append(f"attributes {', '.join(recording.attributes)}")
    return f"{what}: {', '.join(told)}" if told else what


def _process(process: ProcessSummary) -> Sequence[Cell]:
    header = process.header
    return (
        header.rank,
        header.role,
        header.host,
        str(header.pid),
        header.restart,
        process.steps.count,
        sum(process.records.values()),
        size(process.size),
        "" if process.seconds is None else duration(process.seconds),
        "clean" if process.has_footer else "no footer",
    )


def _variables(trace: TraceSummary) -> list[Sequence[Cell]]:
    roles: dict[str, list[VariableSummary]] = {}
    for variable in trace.variables.values():
        roles.setdefault(variable.role, []).append(variable)
    return [
        (
            role,
            len(members),
            sum(each.changes for each in members),
            _shapes(each.shape for each in members),
            ", ".join(sorted({name for each in members for name in each.attributes})),
        )
        for role, members in roles.items()
    ]


def _shapes(shapes: Iterable[tuple[int, ...] | None]) -> str:
    """Name the most frequent shape, and say how many others there are."""
    counts = Counter("x".join(map(str, shape)) or "scalar" for shape in shapes if shape is not None)
    if not counts:
        return ""
    ((shape, _),) = counts.most_common(1)
    return shape if len(counts) == 1 else f"{shape}, {len(counts) - 1} more"


def _range(steps: Steps) -> str:
    if steps.first is None:
        return "none"
    return str(steps.first) if steps.count == 1 else f"{steps.first} to {steps.last}"
