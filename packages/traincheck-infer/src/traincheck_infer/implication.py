"""Whether one precondition holds wherever another does, by what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.conditions.preconditions import value_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_trace_schema.invariants import Clause, ConditionGroup, Conjunction


def follows(stronger: Mapping[str, ConditionGroup], weaker: Mapping[str, ConditionGroup]) -> bool:
    """Say whether `weaker` holds wherever `stronger` does; False if that is not plain to see."""
    return all(
        (group in stronger and _group_follows(stronger[group], of)) or _is_always(of)
        for group, of in weaker.items()
    )


def _group_follows(stronger: ConditionGroup, weaker: ConditionGroup) -> bool:
    if stronger.inverted != weaker.inverted:
        return False
    if stronger.inverted:
        stronger, weaker = weaker, stronger
    return all(
        any(_conjunction_follows(one, other) for other in weaker.preconditions)
        for one in stronger.preconditions
    )


def _is_always(group: ConditionGroup) -> bool:
    said = any(each.clauses == "Unconditional" for each in group.preconditions)
    return said and not group.inverted


def _conjunction_follows(stronger: Conjunction, weaker: Conjunction) -> bool:
    if weaker.clauses == "Unconditional":
        return True
    if stronger.clauses == "Unconditional":
        return not weaker.clauses
    given = stronger.clauses
    return all(any(_clause_follows(one, clause) for one in given) for clause in weaker.clauses)


def _clause_follows(stronger: Clause, weaker: Clause) -> bool:
    if stronger.prop_name != weaker.prop_name:
        return False
    if weaker.type == "exist":
        return stronger.type in {"constant", "exist"}
    if stronger.type != weaker.type:
        return False
    allowed = set(map(value_key, weaker.values))
    return allowed.issuperset(map(value_key, stronger.values))
