"""What `traincheck-schema show` tells of documents that are no traces."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from traincheck_trace_schema.commands.screen import counted
from traincheck_trace_schema.invariant_file import read_invariant_files
from traincheck_trace_schema.plan_file import read_plan
from traincheck_trace_schema.progress_file import read_progress
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.suppression_file import read_suppressions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from traincheck_trace_schema.commands.screen import Screen
    from traincheck_trace_schema.invariants import Invariant


def invariant_lines(path: Path, screen: Screen) -> Iterator[str]:
    """Yield the lines about an invariant file."""
    read = read_invariant_files([path])
    invariants = read.invariants
    relations = Counter(each.relation for each in invariants)
    always = Counter(each.relation for each in invariants if _is_unconditional(each))
    runs = dict.fromkeys(run for each in invariants for run in each.runs)
    trackers = dict.fromkeys(each.tracker for each in invariants if each.tracker)
    yield f"{path}: {counted(len(invariants), 'invariant')}"
    yield from screen.facts(
        {"runs": ", ".join(runs) or "not told", "tracker": ", ".join(trackers) or "not told"}
    )
    yield from screen.section(
        "Relations",
        ("invariants", "unconditional", "relation"),
        [(count, always[name], name) for name, count in relations.most_common()],
    )
    yield from screen.section(
        "Invariants",
        ("id", "claim"),
        [(each.id, each.text_description) for each in invariants],
        is_last_whole=True,
    )
    if read.notes:
        yield ""
    yield from screen.notes("note", read.notes)


def suppression_lines(path: Path, screen: Screen) -> Iterator[str]:
    """Yield the lines about a suppression file."""
    suppressions = read_suppressions(path)
    yield f"{path}: {counted(len(suppressions), 'suppression')}"
    yield from screen.section(
        "Suppressions",
        ("pattern", "reason"),
        [(each.pattern, each.reason) for each in suppressions],
        is_last_whole=True,
    )


def plan_lines(path: Path, screen: Screen) -> Iterator[str]:
    """Yield the lines about a plan."""
    plan = read_plan(path)
    yield f"{path}: plan {plan.id}"
    functions = "all" if plan.functions is None else str(len(plan.functions))
    yield from screen.facts(
        {
            "functions": functions,
            "observed at": ", ".join(plan.looks_around) or "no calls",
            "contexts": ", ".join(plan.contexts) or "none",
        }
    )
    yield from screen.section(
        "Functions",
        ("arguments", "result", "function"),
        [
            (
                each.arguments if isinstance(each.arguments, str) else ", ".join(each.arguments),
                "yes" if each.result else "",
                each.name,
            )
            for each in plan.functions or ()
        ],
    )
    yield from screen.section(
        "Variables",
        ("role", "attributes"),
        [(each.role, ", ".join(each.attributes)) for each in plan.variables],
    )


def progress_lines(path: Path, screen: Screen) -> Iterator[str]:
    """Yield the lines about how far a check has come."""
    progress = read_progress(path)
    state = "goes on" if progress.running else "has ended"
    yield f"{path}: a check that {state}"
    yield from screen.facts(
        {
            "run": progress.run_id or "none yet",
            "process": f"{progress.pid} on {progress.host}",
            "violations": f"{progress.violations:,}",
            "fails": "yes" if progress.fails else "no",
        }
    )
    yield from screen.section(
        "Processes",
        ("rank", "step", "record", "file"),
        [(each.rank, each.step, each.seq, each.shard) for each in progress.processes],
    )


def summary_lines(path: Path, screen: Screen) -> Iterator[str]:
    """Yield the lines about the summary of a check."""
    summary = read_summary(path)
    yield f"{path}: {summary.failed} of {counted(summary.checked, 'invariant')} failed"
    yield from screen.facts(
        {
            "runs": ", ".join(summary.run_ids) or "not told",
            "passed": f"{summary.passed:,}",
            "not triggered": f"{summary.not_triggered:,}",
            "suppressed": f"{summary.suppressed:,}",
            "complete": "yes" if summary.complete else "no",
        }
    )
    yield from screen.section(
        "Violations",
        ("first", "times", "ranks", "claim"),
        [
            (
                f"step {each.first.step}",
                each.occurrences,
                ", ".join(map(str, each.ranks)),
                each.text_description,
            )
            for each in summary.violations
        ],
        is_last_whole=True,
    )
    yield from screen.section(
        "Groups",
        ("id", "title"),
        [(group.id, group.title) for group in summary.groups],
        is_last_whole=True,
    )
    if summary.incomplete_because:
        yield ""
    yield from screen.notes("incomplete", summary.incomplete_because)


def verdict_lines(path: Path, screen: Screen) -> Iterator[str]:
    """Yield the lines about a log of verdicts."""
    verdicts = read_verdicts(path)
    words = Counter(each.verdict for each in verdicts)
    told = ", ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in words.items())
    yield f"{path}: {counted(len(verdicts), 'verdict')}: {told}"
    yield from screen.section(
        "Verdicts",
        ("occasions", "violations", "claim"),
        [(each.occasions, each.violations, each.text_description) for each in verdicts],
        is_last_whole=True,
    )


def _is_unconditional(invariant: Invariant) -> bool:
    return all(
        conjunction.clauses == "Unconditional"
        for group in invariant.precondition.values()
        for conjunction in group.preconditions
    )
