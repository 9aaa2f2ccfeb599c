"""What a finished run recorded, in a few lines."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from traincheck_trace_schema.commands.screen import counted, size
from traincheck_trace_schema.commands.trace_screen import cost

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from traincheck_trace_schema.summary import ProcessSummary, TraceSummary

_SHOWN = 3  # of what was not observed
_STARTS = 8  # of which numbers are told one by one


def report(
    trace: TraceSummary, where: str, models: Sequence[str], known: Collection[str] = ()
) -> Iterator[str]:
    """Yield lines about the trace of a run.

    Args:
        trace: What is in it; calls need not be told.
        where: Its folder, as it can be typed.
        models: Names in the script that models were tracked by.
        known: What is known not to be observed, and was told before.
    """
    records = sum(sum(process.records.values()) for process in trace.processes)
    files = counted(len(trace.processes), "file")
    disk = size(sum(process.size for process in trace.processes))
    yield f"trace in {where}: {counted(records, 'record')}, {disk} in {files}"
    if tracked := _models(trace, models):
        yield f"models tracked: {tracked}"
    yield f"training steps seen: {_steps(trace)}"
    if told := cost(trace):
        yield f"time spent in TrainCheck: {told}"
    if left_out := ", ".join(_not_observed(trace, where, known)):
        yield f"not observed: {left_out}"


def _models(trace: TraceSummary, names: Sequence[str]) -> str:
    tensors: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for name, variable in trace.variables.items():
        if variable.role == "parameter":
            model = _model_of(name, names)
            tensors[model] += 1
            numbers[model] += math.prod(variable.shape or (0,))
    return ", ".join(
        f"{model} ({counted(numbers[model], 'parameter')} in {counted(count, 'tensor')})"
        if numbers[model]
        else f"{model} ({counted(count, 'parameter tensor')})"
        for model, count in tensors.items()
    )


def _model_of(variable: str, models: Sequence[str]) -> str:
    """Return the name of the model that a variable is of; by hand, others may be tracked."""
    of = [model for model in models if variable.startswith(f"{model}.")]
    return max(of, key=len, default=variable.partition(".")[0])


def _steps(trace: TraceSummary) -> str:
    told = _of_ranks(trace, lambda process: process.steps.count)
    sampled = _of_ranks(trace, lambda process: process.steps.sampled)
    if sampled != told:
        told = f"{told}, recorded: {sampled}"
    if any(process.header.steps_from == "model" for process in trace.processes):
        told = f"{told}; counted by the calls of the model"
    if any(process.eval_steps for process in trace.processes):
        seen = _of_ranks(trace, lambda process: process.eval_steps)
        sampled = _of_ranks(trace, lambda process: process.eval_sampled)
        recorded = "" if sampled == seen else f", recorded: {sampled}"
        told = f"{told}; evaluation steps: {seen}{recorded}"
    return told


def _of_ranks(trace: TraceSummary, count: Callable[[ProcessSummary], int]) -> str:
    """Say a number of each rank; only once if it is the same of all.

    A script may have started the program several times: then those of one start stand side by side.
    """
    starts = [process for process in trace.processes if process.header.role == "main"]
    if len(starts) > len({(one.header.rank, one.header.restart) for one in starts}):
        return f"{', '.join(f'{count(one):,}' for one in starts[:_STARTS])}{_more(starts)}"
    numbers: dict[int, int] = {}
    for process in trace.processes:
        if process.header.role == "main" or process is trace.lead:
            rank = process.header.rank
            numbers[rank] = max(count(process), numbers.get(rank, 0))  # of restarts the longest
    if len(set(numbers.values())) <= 1:
        number = f"{next(iter(numbers.values()), 0):,}"
        return number if len(numbers) <= 1 else f"{number} on each of {len(numbers)} ranks"
    return ", ".join(f"rank {rank}: {number:,}" for rank, number in sorted(numbers.items()))


def _more(starts: Sequence[ProcessSummary]) -> str:
    of = f" in {len(starts)} starts of the program"
    return f", ...{of}" if len(starts) > _STARTS else of


def _not_observed(trace: TraceSummary, where: str, known: Collection[str]) -> Iterator[str]:
    for reason, count in trace.gaps.items():
        if reason != "sampling":
            yield f"{counted(count, 'record')} missing ({reason})"
    others = {what: why for what, why in trace.not_observed.items() if what not in known}
    for noun, unseen in (("function", trace.not_wrapped), ("thing", others)):
        if len(unseen) > _SHOWN:
            yield f"{counted(len(unseen), noun)} (traincheck-schema show {where})"
        else:
            yield from _by_reason(unseen)


def _by_reason(unseen: Mapping[str, str]) -> Iterator[str]:
    """Yield each reason once, after all that it holds for."""
    for reason in dict.fromkeys(unseen.values()):
        whats = " and ".join(what for what, why in unseen.items() if why == reason)
        yield f"{whats} ({reason})"
