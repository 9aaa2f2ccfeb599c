"""The id of an invariant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.codec import content_id, dumps, unstructure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_trace_schema.invariants import ConditionGroup, Params


def invariant_id(relation: str, params: Params, precondition: Mapping[str, ConditionGroup]) -> str:
    """Return the id of an invariant: the same invariant has the same one on any machine."""
    groups = {name: _canonical(unstructure(group)) for name, group in precondition.items()}
    return content_id([relation, [unstructure(param) for param in params], groups])


def _canonical(value: Any) -> Any:
    """Sort what is a set in meaning: conjunctions, their clauses, a clause's values."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_canonical, value), key=dumps)
    return value
