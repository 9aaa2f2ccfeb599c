"""How much of what could be judged was, and what to do about the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_trace_schema.results import Summary

_LITTLE = 0.5  # of the invariants; where fewer applied, "no violation" says little
_SHOWN = 4  # reasons
ADVICE: Mapping[str, str] = {
    "never called, or not recorded": (
        "collect with the invariant file that is checked (traincheck-collect --invariants)"
    ),
    "not recorded": "see the reasons in not_triggered.log",
    "never called": "nothing, if the program has no need of these functions",
    "precondition never met": (
        "nothing, if the program differs there from those that the invariants were learnt from, as "
        "in its model; else learn them from a run of it that is good"
    ),
    "no variable tracked": "collect with --models-to-track",
    "no occasion": "collect with the same tracker, for more steps, and leave none of them out",
    "not checkable": "see the warnings; install what is missing, or infer the invariants again",
    "relation failed": "report it to whoever ships the relation",
}


def applied(summary: Summary) -> int:
    """Return how many invariants applied."""
    return summary.failed + summary.passed


def is_little(summary: Summary) -> bool:
    """Whether so few invariants applied that "no violation" says little."""
    return applied(summary) < _LITTLE * summary.checked


def unjudged(summary: Summary) -> Iterator[str]:
    """Yield why invariants were not judged: in a line, or with what to do if these are many."""
    reasons = sorted(summary.unjudged.items(), key=lambda each: (-each[1], each[0]))
    if not reasons:
        return
    more = len(reasons) - _SHOWN
    if len(reasons) == 1 and not is_little(summary):
        yield f"{summary.not_triggered} not judged: {reasons[0][0]}"
    elif not is_little(summary):
        told = ", ".join(f"{count} {kind}" for kind, count in reasons[:_SHOWN])
        yield f"{summary.not_triggered} not judged: {told}{f', {more} more' if more > 0 else ''}"
    else:
        for kind, count in reasons[:_SHOWN]:
            yield f"{count} not judged, {kind}: {advice(kind)}"


def advice(kind: str) -> str:
    """Say what to do about invariants that were not judged for a kind of reason."""
    return ADVICE.get(kind, "see not_triggered.log")


def judged_steps(summary: Summary) -> str:
    """Say how much of training was seen, or nothing if no rank told of a step."""
    ranks = [rank for rank in summary.ranks if rank.steps]
    if not ranks:
        return ""
    most = max(ranks, key=lambda rank: rank.steps)
    seen = f"{most.steps:,} training step{'s' * (most.steps != 1)}"
    if most.recorded < most.steps:
        seen = f"{most.recorded:,} of {seen} recorded"
    return f"{seen}, on {len(ranks)} rank{'s' * (len(ranks) != 1)}"
