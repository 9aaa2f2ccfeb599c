"""Derives from invariants what must be recorded to check them, and no more."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal, cast

import attrs

from traincheck_relations.conditions.preconditions import condition_of
from traincheck_relations.conditions.properties import requirements_of
from traincheck_relations.registry import not_checkable, relations_for
from traincheck_relations.values.call_values import ALL_ARGUMENTS
from traincheck_trace_schema.plan import FunctionPlan, Plan, VariablePlan
from traincheck_trace_schema.plan_file import plan_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traincheck_relations.api import Relation, Requirements
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.records import Role


def plan_for(
    invariants: Sequence[Invariant], relations: Mapping[str, Relation] | None = None
) -> Plan:
    """Return the plan that records all that the invariants and their preconditions need.

    The same invariants in any order give the same plan, with the same id. Those that can't be
    checked with the relations that are loaded are left out.

    Args:
        invariants: What is to be checked.
        relations: The relations by name; None loads those that the invariants name.

    Raises:
        InvariantError: None of the invariants can be checked.
    """
    left_out: Mapping[str, str] = {}
    if relations is None:
        loaded = relations_for(invariants)
        relations = loaded.relations
        left_out = not_checkable(invariants, relations, loaded.faults)
    needs = [
        need
        for invariant in invariants
        if invariant.id not in left_out
        for need in requirements_for(invariant, relations[invariant.relation])
    ]
    return _plan(needs)


def requirements_for(invariant: Invariant, relation: Relation) -> Iterator[Requirements]:
    """Yield what the claim of an invariant needs recorded, then what its precondition needs."""
    yield relation.requires(invariant.params)
    for conjunction in condition_of(invariant, relation).preconditions:
        if conjunction.clauses != "Unconditional":
            for clause in conjunction.clauses:
                yield requirements_of(clause.prop_name, invariant.params)


def _plan(needs: Sequence[Requirements]) -> Plan:
    arguments = _merged(need.functions for need in needs)
    attributes = _merged(need.variables for need in needs)
    results = frozenset[str]().union(*(need.results for need in needs))
    observe = frozenset[str]().union(*(need.observe for need in needs))
    before = frozenset[str]().union(*(need.observe_before for need in needs)) - observe
    after = frozenset[str]().union(*(need.observe_after for need in needs)) - observe
    contexts = frozenset[str]().union(*(need.contexts for need in needs))
    plan = Plan(
        id="",
        functions=tuple(
            FunctionPlan(
                name=name,
                arguments=_arguments(arguments.get(name, set())),
                result=name in results,
            )
            for name in sorted(arguments.keys() | results | observe | before | after)
        ),
        variables=tuple(
            VariablePlan(role=cast("Role", role), attributes=tuple(sorted(of)))
            for role, of in sorted(attributes.items())
        ),
        observe=tuple(sorted(observe)),
        observe_before=tuple(sorted(before)),
        observe_after=tuple(sorted(after)),
        contexts=tuple(sorted(contexts)),
    )
    return attrs.evolve(plan, id=plan_id(plan))


def _arguments(names: set[str]) -> Literal["all"] | tuple[str, ...]:
    return "all" if ALL_ARGUMENTS in names else tuple(sorted(names))


def _merged(maps: Iterable[Mapping[str, frozenset[str]]]) -> dict[str, set[str]]:
    merged: defaultdict[str, set[str]] = defaultdict(set)
    for each in maps:
        for name, values in each.items():
            merged[name] |= values
    return dict(merged)
