"""What makes the results of a check less than they seem."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from traincheck_check.judging.other_trackers import other_trackers
from traincheck_check.judging.progress import uneven

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traincheck_check.judging.judge import Checked


def warnings_of(checked: Checked) -> Iterator[str]:
    """Yield what a person should know before they believe the results."""
    for reason, count in Counter(checked.unchecked.values()).items():
        yield f"not checked: {count} invariant{'s' if count > 1 else ''}: {reason}"
    if not checked.seen.steps:
        yield (
            "no training step is recorded in this trace, so little can be checked; collect again "
            "from a script whose training loop is found, or mark its steps by hand"
        )
    if not checked.running and (told := uneven(checked.ranks)):
        yield told
    yield from _of_trackers(checked)


def _of_trackers(checked: Checked) -> Iterator[str]:
    used = {shard.header.tracker for shard in checked.trace.shards}
    claims = [
        finding.invariant
        for finding in checked.findings
        if finding.invariant.id not in checked.unchecked
    ]
    if learnt := other_trackers(claims, checked.claims.relations, used):
        yield (
            f"invariants were inferred with tracker {_named(learnt)}, this trace was collected "
            f"with {_named(used)}; what only one of them sees may be told wrongly, collect with "
            "the same"
        )


def _named(trackers: Iterable[str | None]) -> str:
    return ", ".join(sorted(tracker or "none" for tracker in trackers))
