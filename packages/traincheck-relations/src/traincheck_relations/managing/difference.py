"""How two sets of invariants differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_relations.managing.claims import claim_key
from traincheck_trace_schema.invariant_id import invariant_id
from traincheck_trace_schema.invariants import Invariant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@attrs.frozen(kw_only=True)
class Changed:
    """A claim that both have, and under which conditions only the first, or only the second."""

    before: tuple[Invariant, ...]
    after: tuple[Invariant, ...]
    both: tuple[Invariant, ...] = ()

    @property
    def members(self) -> tuple[Invariant, ...]:
        """All of them; there is always one."""
        return (*self.before, *self.after, *self.both)


@attrs.frozen(kw_only=True)
class Difference:
    """What only the first has, what only the second has, what changed its precondition."""

    only_first: tuple[Invariant, ...]
    only_second: tuple[Invariant, ...]
    changed: tuple[Changed, ...]
    same: int  # invariants that both have

    def __bool__(self) -> bool:
        return bool(self.only_first or self.only_second or self.changed)


def difference(first: Iterable[Invariant], second: Iterable[Invariant]) -> Difference:
    """Compare what is claimed, and when; counts, runs, words and given ids don't matter.

    Each list is in the order of the first or, of what only the second has, of the second.
    """
    before, after = _by_claim(first), _by_claim(second)
    shared = [(own, after[claim]) for claim, own in before.items() if claim in after]
    return Difference(
        only_first=tuple(_without(before, after)),
        only_second=tuple(_without(after, before)),
        changed=tuple(
            Changed(
                before=tuple(_without_conditions(own, others)),
                after=tuple(_without_conditions(others, own)),
                both=tuple(each for key, each in own.items() if key in others),
            )
            for own, others in shared
            if own.keys() != others.keys()
        ),
        same=sum(len(own.keys() & others.keys()) for own, others in shared),
    )


def _by_claim(invariants: Iterable[Invariant]) -> dict[str, dict[str, Invariant]]:
    """Return the invariants of each claim, by the id that their content gives."""
    claims: dict[str, dict[str, Invariant]] = {}
    for each in invariants:
        content = invariant_id(each.relation, each.params, each.precondition)
        claims.setdefault(claim_key(each), {}).setdefault(content, each)
    return claims


def _without(
    claims: Mapping[str, Mapping[str, Invariant]], others: Mapping[str, object]
) -> Iterator[Invariant]:
    for claim, own in claims.items():
        if claim not in others:
            yield from own.values()


def _without_conditions(
    own: Mapping[str, Invariant], others: Mapping[str, object]
) -> Iterator[Invariant]:
    return (each for key, each in own.items() if key not in others)
