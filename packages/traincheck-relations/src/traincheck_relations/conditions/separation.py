"""Finds the preconditions that separate where a relation held from where it did not.

Contexts are encoded once as a matrix of integers, one row a context and one column a property; all
candidate clauses of a question are then judged by a few numpy operations. Among preconditions that
separate, those about the variable come first, then those about the call, its contexts, the run and
the ranks. Incidental facts, such as a shape or an argument's value, are used only where nothing
else separates, and the name of a variable or module only where they don't either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from traincheck_relations.conditions.preconditions import ALWAYS, value_key
from traincheck_trace_schema.invariants import Clause, ConditionGroup, Conjunction
from traincheck_trace_schema.values import Scalar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from traincheck_relations.api import Context

MAX_ALTERNATIVES = 3  # preconditions that separate equally well, from different facts
MAX_VALUES = 8  # a clause that lists more values describes what was seen, and no rule
MAX_CLAUSES = 3  # in one conjunction
MAX_PARTS = 4  # in one disjunction
# Conjunctions are tried over so many clauses, the preferred first: the number of triples grows with
# the cube, and 40 clauses have 9,880.
MAX_CANDIDATES = 40
UNKNOWN = -1

LAST_RESORT = frozenset(("var.name", "call.module.name"))
# They differ between programs, and between runs of one, without anything being wrong.
INCIDENTAL = ("var.ndim", "var.dtype", "call.arg.", "call.module.type", "rank.")
# Properties of one family tell the same fact, the first of them most precisely.
_FAMILIES: Mapping[str, str] = {"var.held_by_caller": "held", "var.held": "held"}
_PREFERRED = ("var.held_by_caller", "var.held", "var.requires_grad", "var.grad")
_NAMESPACES = ("var", "call", "ctx", "run", "rank")

_Codes: TypeAlias = NDArray[np.int64]
_Mask: TypeAlias = NDArray[np.bool_]


def separate(
    positives: Collection[Context],
    negatives: Collection[Context],
    *,
    incidental_separates: bool = True,
) -> list[ConditionGroup]:
    """Return the simplest preconditions that hold in all `positives` and in no negative.

    In this order: none at all (no negatives); the smallest conjunctions, at most three and each
    with a fact of its own; the disjunction of the fewest clauses; the negation of a description of
    the negatives. Empty if nothing separates. The order of the contexts does not matter.

    Args:
        positives: Contexts in which a claim held.
        negatives: Contexts in which it did not.
        incidental_separates: Whether incidental facts and names may separate; with few negatives,
            some always do so by accident.
    """
    if not positives:
        return []
    if not negatives:
        return [ALWAYS]
    table = _Table.encode(_columns((*positives, *negatives)), positives, negatives)
    if table.has_common_row():
        return []
    plain = table.without(LAST_RESORT)
    essential = plain.without([name for name in plain.columns if name.startswith(INCIDENTAL)])
    found = _separating(essential)
    if not found and incidental_separates:
        found = _separating(plain)
    found = found or _inverted(essential.swapped())
    if not found and incidental_separates:
        found = _separating(table)
    return found


def _separating(table: _Table) -> list[ConditionGroup]:
    if found := _conjunctions(table):
        return [ConditionGroup(preconditions=(each,)) for each in found]
    if parts := _disjunction(table):
        return [ConditionGroup(preconditions=parts)]
    return []


def _inverted(table: _Table) -> list[ConditionGroup]:
    """Describe what `table` takes for the positives, and turn that round."""
    parts = tuple(_conjunctions(table)[:1]) or _disjunction(table)
    return [ConditionGroup(inverted=True, preconditions=parts)] if parts else []


@attrs.frozen(eq=False)
class _Table:
    """Contexts as numbers: `UNKNOWN`, or an index into the column's sorted values."""

    columns: Sequence[str]
    values: Mapping[str, Sequence[Scalar]]
    positives: _Codes
    negatives: _Codes

    @classmethod
    def encode(
        cls, columns: Sequence[str], positives: Iterable[Context], negatives: Iterable[Context]
    ) -> _Table:
        """Encode contexts; equal rows become one."""
        kept, dropped = list(positives), list(negatives)
        values = {name: _values(name, (*kept, *dropped)) for name in columns}
        codes = {
            name: {value_key(value): code for code, value in enumerate(of)}
            for name, of in values.items()
        }
        return cls(columns, values, _rows(kept, codes), _rows(dropped, codes))

    def has_common_row(self) -> bool:
        """Whether some context is positive and negative at once."""
        both = np.concatenate((self.positives, self.negatives))
        return len(np.unique(both, axis=0)) < len(both)

    def without(self, names: Collection[str]) -> _Table:
        """Leave columns out."""
        kept = [at for at, name in enumerate(self.columns) if name not in names]
        return attrs.evolve(
            self,
            columns=[self.columns[at] for at in kept],
            positives=self.positives[:, kept],
            negatives=self.negatives[:, kept],
        )

    def swapped(self) -> _Table:
        """Ask for a description of the negatives."""
        return attrs.evolve(self, positives=self.negatives, negatives=self.positives)

    def part(self, rows: _Mask) -> _Table:
        """Keep some of the positives."""
        return attrs.evolve(self, positives=self.positives[rows])


@attrs.frozen(eq=False)
class _Fact:
    """A clause that holds in all positives, and which negatives it excludes."""

    clause: Clause
    excludes: _Mask

    @property
    def family(self) -> str:
        """Return what the clause is about."""
        return _FAMILIES.get(self.clause.prop_name, self.clause.prop_name)


def _facts(table: _Table) -> list[_Fact]:
    """Return the clauses that hold in all positives and exclude some negative."""
    facts = []
    for at, name in enumerate(table.columns):
        seen = np.unique(table.positives[:, at])
        if not seen.size or seen[0] == UNKNOWN:
            continue
        others = table.negatives[:, at]
        if len(seen) <= MAX_VALUES:
            allowed = tuple(table.values[name][code] for code in seen)
            clause = Clause(type="constant", prop_name=name, values=allowed)
            excludes = ~np.isin(others, seen)
        else:
            clause = Clause(type="exist", prop_name=name)
            excludes = others == UNKNOWN
        if excludes.any():
            facts.append(_Fact(clause, excludes))
    return facts


def _conjunctions(table: _Table) -> list[Conjunction]:
    """Return the smallest conjunctions that separate, each with a fact that no earlier one has."""
    facts = _facts(table)
    for size in range(1, MAX_CLAUSES + 1):
        if found := _distinct(_combined(facts if size == 1 else facts[:MAX_CANDIDATES], size)):
            return found
    return []


def _combined(facts: Sequence[_Fact], size: int) -> Iterator[tuple[_Fact, ...]]:
    """Yield the combinations of so many facts that together exclude every negative."""
    if len(facts) < size:
        return
    # Negatives that the same facts exclude are one question.
    excludes = np.unique([fact.excludes for fact in facts], axis=1)
    if not excludes.any(axis=0).all():
        return
    for first in combinations(range(len(facts)), size - 1):
        start = first[-1] + 1 if first else 0
        together = excludes[list(first)].any(axis=0) | excludes[start:]
        for last in np.flatnonzero(together.all(axis=1)):
            yield (*(facts[at] for at in first), facts[start + int(last)])


def _distinct(found: Iterable[tuple[_Fact, ...]]) -> list[Conjunction]:
    chosen: list[Conjunction] = []
    told: set[str] = set()
    for facts in found:
        families = {fact.family for fact in facts}
        if families <= told:
            continue
        told |= families
        chosen.append(Conjunction(clauses=tuple(fact.clause for fact in facts)))
        if len(chosen) == MAX_ALTERNATIVES:
            break
    return chosen


def _disjunction(table: _Table) -> tuple[Conjunction, ...]:
    """Split the positives by one property such that each part has a conjunction of its own."""
    best: tuple[Conjunction, ...] = ()
    for at in range(len(table.columns)):
        column = table.positives[:, at]
        seen = np.unique(column)
        if not 2 <= len(seen) <= MAX_PARTS:  # noqa: PLR2004  one part is no split
            continue
        parts = [_conjunctions(table.part(column == code))[:1] for code in seen]
        if all(parts):
            found = tuple(part[0] for part in parts)
            if not best or _clauses(found) < _clauses(best):
                best = found
    return best


def _clauses(parts: Iterable[Conjunction]) -> int:
    return sum(len(part.clauses) for part in parts)


def _values(name: str, contexts: Iterable[Context]) -> list[Scalar]:
    """Return the values of a property, sorted; 1 and 1.0 are one value."""
    seen = {
        (type(value).__name__, value_key(value)): value
        for context in contexts
        for value in ([context[name]] if name in context else [])
    }
    return list({value_key(seen[key]): seen[key] for key in sorted(seen)}.values())


def _rows(
    contexts: Sequence[Context], codes: Mapping[str, Mapping[tuple[bool, Scalar], int]]
) -> _Codes:
    rows = [
        [of[value_key(context[name])] if name in context else UNKNOWN for name, of in codes.items()]
        for context in contexts
    ]
    return np.unique(np.array(rows, dtype=np.int64).reshape(len(rows), len(codes)), axis=0)


def _columns(contexts: Iterable[Context]) -> list[str]:
    """Return the properties, the preferred first, that a clause can be about.

    A property that was NaN once is left out: NaN equals nothing, so no clause matches it again.
    """
    names: set[str] = set()
    unusable: set[str] = set()
    for context in contexts:
        names.update(context)
        unusable.update(name for name, value in context.items() if value != value)  # noqa: PLR0124
    return sorted(names - unusable, key=_preference)


def _preference(name: str) -> tuple[bool, int, int, str]:
    namespace = name.partition(".")[0]
    return (
        name in LAST_RESORT,
        _index(_NAMESPACES, namespace),
        _index(_PREFERRED, name),
        name,
    )


def _index(ranking: Sequence[str], name: str) -> int:
    return ranking.index(name) if name in ranking else len(ranking)
