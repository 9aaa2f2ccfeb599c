"""Finds invariants that were learnt from variables followed in another way than in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.planning import requirements_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import Invariant


def other_trackers(
    claims: Iterable[Invariant], relations: Mapping[str, Relation], used: Collection[str | None]
) -> set[str]:
    """Return the trackers of claims that a trace may tell otherwise, having been made without them.

    Args:
        claims: Invariants that can be checked.
        relations: The relations that they are about, by name.
        used: The trackers of the trace; None where none was at work.
    """
    return {
        claim.tracker
        for claim in claims
        if claim.tracker is not None
        and claim.tracker not in used
        and _depends(claim, relations[claim.relation], used)
    }


def _depends(claim: Invariant, relation: Relation, used: Collection[str | None]) -> bool:
    """Whether it matters to a claim how variables are followed.

    What only compares them is shown the same by every tracker, but not without one.
    """
    needs = list(requirements_for(claim, relation))
    wants_variables = any(need.variables for need in needs)
    return wants_variables and (None in used or any(need.observe for need in needs))
