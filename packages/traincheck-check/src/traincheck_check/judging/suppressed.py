"""Sets aside the invariants that are not to be checked."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from traincheck_relations.suppression import Suppressions
from traincheck_trace_schema.results import Suppressed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.suppressions import Suppression


def without_suppressed(
    invariants: Sequence[Invariant], suppressions: Sequence[Suppression]
) -> tuple[list[Invariant], list[Suppressed]]:
    """Return the invariants that are to be checked, and what keeps the others from it.

    Each of these stands once, with the first suppression that matches it.
    """
    found = Suppressions.of(suppressions)
    kept = []
    ids: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for invariant in invariants:
        suppression = found.find(invariant)
        if suppression is None:
            kept.append(invariant)
        else:
            ids[suppression.pattern, suppression.reason].append(invariant.id)
    return kept, [
        Suppressed(pattern=pattern, reason=reason, invariant_ids=tuple(of))
        for (pattern, reason), of in ids.items()
    ]
