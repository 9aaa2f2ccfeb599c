"""A baseline: what is broken now, so that later checks fail on what is new only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_trace_schema.suppression_file import write_suppressions
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from traincheck_check.judging.outcome import Outcome


def write_baseline(path: Path, outcomes: Iterable[Outcome], known: Mapping[str, str]) -> None:
    """Write a baseline that names all that was broken, each once, by id.

    Args:
        path: Where to.
        outcomes: What was found.
        known: The reasons of a former baseline, by id; they are kept.

    Raises:
        ConfigError: It can't be written.
    """
    reasons: dict[str, str] = {}
    for outcome in outcomes:
        run = ", ".join(outcome.summary.run_ids)
        for each in outcome.summary.violations:
            what = each.happened or each.text_description
            reason = known.get(each.invariant_id, f"broken in run {run}: {what}")
            reasons.setdefault(each.invariant_id, reason)
    write_suppressions(
        path, [Suppression(pattern=id_, reason=reason) for id_, reason in reasons.items()]
    )
