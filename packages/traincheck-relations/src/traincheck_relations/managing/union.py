"""The union of several sets of invariants."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariant_id import invariant_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.occasion import Reference


def union(sets: Iterable[Iterable[Invariant]]) -> list[Invariant]:
    """Return the invariants of all sets, each once, with what they were inferred from joined.

    The result depends neither on the order of the sets nor on how often one is given. What is most
    likely to be a bug comes first. Of an invariant that stands in several sets:

    - `runs` are those of all of them.
    - The numbers of examples are added up. A set whose runs another one has too adds nothing. Where
      they can't be known they are left out: two sets share some of their runs, or tell different
      numbers for the same, or one does not tell its runs.
    - The tracker is left out if they differ. The likelihood is the highest.
    - The reference is that in the first run by its id.

    Raises:
        InvariantError: Sets have one id for different invariants.
    """
    members: dict[str, list[Invariant]] = {}
    for each in (each for one in sets for each in one):
        members.setdefault(each.id, []).append(each)
    return sorted(map(_joined, members.values()), key=_order)


def _joined(members: Sequence[Invariant]) -> Invariant:
    meanings = {invariant_id(each.relation, each.params, each.precondition) for each in members}
    if len(meanings) > 1:
        raise InvariantError(
            f"The id {members[0].id!r} stands for different invariants; give each the id that its "
            "content has (traincheck-schema validate FILE names it)"
        )
    trackers = {each.tracker for each in members}
    return attrs.evolve(
        min(members, key=_words),  # the same whatever the order
        runs=tuple(sorted({run for each in members for run in each.runs})),
        num_positive_examples=_total((each.runs, each.num_positive_examples) for each in members),
        num_negative_examples=_total((each.runs, each.num_negative_examples) for each in members),
        tracker=trackers.pop() if len(trackers) == 1 else None,
        likelihood=max(
            (each.likelihood for each in members if each.likelihood is not None), default=None
        ),
        reference=min(
            (each.reference for each in members if each.reference is not None),
            key=_first_run,
            default=None,
        ),
    )


def _total(counts: Iterable[tuple[Iterable[str], int | None]]) -> int | None:
    """Return how many examples all runs gave together; None if that can't be known."""
    by_runs: dict[frozenset[str], int | None] = {}
    for names, count in counts:
        runs = frozenset(names)
        by_runs[runs] = count if by_runs.get(runs, count) == count else None
    return _sum(by_runs)


def _sum(by_runs: Mapping[frozenset[str], int | None]) -> int | None:
    if len(by_runs) > 1 and frozenset() in by_runs:
        return None  # the runs that are not told may be among the others, or not
    largest = [runs for runs in by_runs if not any(runs < other for other in by_runs)]
    if any(one & other for one, other in combinations(largest, 2)):
        return None
    total = 0
    for runs in largest:
        count = by_runs[runs]
        if count is None:
            return None
        total += count
    return total


def _first_run(reference: Reference) -> tuple[str, str]:
    return reference.run, dumps(unstructure(reference))  # the same whatever the order


def _words(invariant: Invariant) -> str:
    return dumps([invariant.text_description, unstructure(invariant)["precondition"]])


def _order(invariant: Invariant) -> tuple[float, str, str, str]:
    likelihood = -1.0 if invariant.likelihood is None else invariant.likelihood
    return -likelihood, invariant.relation, invariant.text_description, invariant.id
