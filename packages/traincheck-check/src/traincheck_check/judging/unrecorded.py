"""Finds invariants about functions that a run did not record: their silence says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_trace_schema.invariants import function_of
from traincheck_trace_schema.legacy import documented_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_check.judging.finding import Finding
    from traincheck_relations.engine import Seen
    from traincheck_trace_schema.reading import Shard


def unrecorded(shards: Iterable[Shard], findings: Iterable[Finding], seen: Seen) -> dict[str, str]:
    """Say of broken invariants, by their ids, which of their functions the run did not record.

    An old invariant may say that a function of torch calls a private one. Only where some functions
    of a package are recorded is it known that another one of the package is not.
    """
    recorded = {name for shard in shards for name in shard.header.recording.functions}
    packages = {_package(name) for name in recorded}
    reasons = {}
    for finding in findings:
        for name in filter(None, map(function_of, finding.invariant.params)):
            is_known = name in seen.functions or not recorded.isdisjoint(
                (name, documented_name(name))
            )
            if finding.violations and _package(name) in packages and not is_known:
                reasons[finding.invariant.id] = f"{name} is not recorded in this trace"
    return reasons


def _package(name: str) -> str:
    return name.partition(".")[0]
