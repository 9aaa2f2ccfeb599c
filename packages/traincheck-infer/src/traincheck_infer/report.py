"""What `traincheck-infer` says at the end: what was read, found and left out, and what is odd."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from traincheck_infer.outcome import Reason
from traincheck_trace_schema.cli import note, say, warn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traincheck_infer.outcome import Inference
    from traincheck_trace_schema.reading import Run

_NAMED = 5  # runs that contradict, or that a tracker was used in


def warn_of_what_is_missing(runs: Sequence[Run], inference: Inference) -> None:
    """Tell what makes the invariants fewer or weaker than they might be."""
    for run in inference.runs:
        if not run.steps:
            warn(f"run {run.run_id} has no training step; was its training loop found?")
        for reason in run.incomplete_because:
            warn(f"run {run.run_id} is incomplete: {reason}")
        for text in run.notes:
            note(f"run {run.run_id}: {text}")
    if told := _trackers(runs):
        warn(
            f"the runs were not collected with one tracker ({told}); what a tracker can't see "
            "counts as not observed, so fewer invariants are found"
        )
    for fault in inference.faults:
        warn(f"{fault.relation} failed and was left out: {fault.error}")
    if not inference.invariants:
        warn("no invariant was found; give longer runs (at least 5 steps) or more of them")


def report(inference: Inference, output: Path, seconds: float) -> None:
    """Say what was read, found and left out, and what comes next."""
    steps = sum(inference.steps.values())
    say(
        f"Read {count(len(inference.runs), 'run')}: {count(steps, 'training step')}, "
        f"{count(inference.records, 'record')}, in {seconds:.1f} s."
    )
    say(
        f"Found {count(len(inference.invariants), 'invariant')} among "
        f"{count(inference.candidates, 'candidate')}:"
    )
    by_relation = Counter(invariant.relation for invariant in inference.invariants)
    for relation, number in sorted(by_relation.items()):
        say(f"  {number:6,} {relation}")
    _report_left_out(inference)
    if not inference.invariants:
        say(f"Written to {output}, which is empty: there is nothing to check with it.")
        return
    say(f"Written to {output}. Next, collect the run to be checked, and check it:")
    say(
        f"  traincheck-collect --invariants {output} --pyscript SCRIPT --models-to-track MODEL "
        "--output-dir TRACE"
    )
    say(f"  traincheck-check -f TRACE -i {output}")


def count(number: int, what: str) -> str:
    """Return a number of things, as a sentence has it."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _report_left_out(inference: Inference) -> None:
    if not inference.left_out:
        return
    say("Left out were candidates")
    for reason in Reason:
        if number := inference.left_out.get(reason, 0):
            say(f"  {number:6,} {reason.value}")
            if reason is Reason.CONTRADICTED:
                _report_contradictions(inference)


def _report_contradictions(inference: Inference) -> None:
    folders = {run.run_id: run.folder for run in inference.runs}
    ordered = sorted(inference.contradicted_by.items(), key=lambda one: (-one[1], one[0]))
    for run_id, number in ordered[:_NAMED]:
        say(f"         {number:6,} by run {run_id} in {folders[run_id]}")
    if len(ordered) > _NAMED:
        say(f"                and by {len(ordered) - _NAMED} other runs")


def _trackers(runs: Sequence[Run]) -> str:
    """Name the trackers and the runs that they were used in; empty if it was one."""
    used: defaultdict[str, list[str]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.run_id):
        for tracker in sorted({shard.header.tracker or "none" for shard in run.shards}):
            used[tracker].append(run.run_id)
    return (
        "; ".join(_used(tracker, used[tracker]) for tracker in sorted(used))
        if len(used) > 1
        else ""
    )


def _used(tracker: str, runs: Sequence[str]) -> str:
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return f"{tracker}: {', '.join(runs[:_NAMED])}{more}"
