"""What to look at first: what the relation of a broken invariant says of its usual causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import Invariant


def usual_causes(invariant: Invariant, relations: Mapping[str, Relation]) -> str:
    """Say what to look at first, or nothing if the relation does not: its claims are its own."""
    look_at = getattr(relations.get(invariant.relation), "look_at", None)
    if look_at is None:
        return ""
    try:
        return str(look_at(invariant.params))
    except Exception:  # noqa: BLE001  a plugin may fail in any way; the violation is told all the same
        return ""
