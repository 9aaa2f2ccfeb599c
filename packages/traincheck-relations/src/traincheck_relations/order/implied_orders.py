"""Leaves out orders that follow from others: if A comes before B, and B before C, A before C."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.order.protocol import CORE, place
from traincheck_trace_schema.invariants import Invariant

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


@attrs.frozen(eq=False)
class Edge:
    """An invariant that says that one function comes before another; only one kind is chained."""

    invariant: Invariant
    first: str
    second: str
    kind: str = ""


def without_implied(edges: Sequence[Edge]) -> list[Invariant]:
    """Return the invariants without those that a chain of others of their kind implies.

    The others must hold whenever it does. Orders of the core functions are implied by one another
    only: a program that lacks what stands between them is checked for them all the same. Where
    there is a choice, what stands next to each other in a step is kept.
    """
    places = {name: at for at, name in enumerate(sorted(_functions(edges), key=place))}

    def distance(edge: Edge) -> tuple[int, str]:
        return (places[edge.second] - places[edge.first]) % len(places), edge.invariant.id

    left = {edge.invariant.id: edge for edge in edges}
    for edge in sorted(edges, key=distance, reverse=True):
        del left[edge.invariant.id]
        if not _is_implied(edge, left.values()):
            left[edge.invariant.id] = edge
    return [edge.invariant for edge in edges if edge.invariant.id in left]


def _is_implied(edge: Edge, others: Collection[Edge]) -> bool:
    """Whether a chain leads from the first function of an order to its second."""
    is_core = {edge.first, edge.second} <= CORE
    after: defaultdict[str, set[str]] = defaultdict(set)
    for other in others:
        if _applies_with(other, edge) and (not is_core or {other.first, other.second} <= CORE):
            after[other.first].add(other.second)
    reached, todo = {edge.first}, [edge.first]
    while todo:
        found = after[todo.pop()] - reached
        reached |= found
        todo += found
    return edge.second in reached


def _applies_with(other: Edge, edge: Edge) -> bool:
    conditions = other.invariant.precondition
    always = all(group == ALWAYS for group in conditions.values())
    return other.kind == edge.kind and (always or conditions == edge.invariant.precondition)


def _functions(edges: Sequence[Edge]) -> set[str]:
    return {name for edge in edges for name in (edge.first, edge.second)}
