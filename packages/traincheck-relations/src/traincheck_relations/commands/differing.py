"""How a difference between invariant files is told: in lines for people, or as an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traincheck_relations.managing.claims import claim_in_words, condition_in_words
from traincheck_relations.managing.ids import short_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_relations.managing.difference import Difference
    from traincheck_trace_schema.invariants import Invariant


def as_lines(found: Difference, *, first: str, second: str) -> Iterator[str]:
    """Yield the lines of a difference between two files, the sum in the last."""
    ids = short_ids([each.id for each in _all(found)])
    for each in found.only_first:
        yield _line("-", each, each.text_description, ids)
    for each in found.only_second:
        yield _line("+", each, each.text_description, ids)
    for changed in found.changed:
        yield click.style(f"~ {claim_in_words(changed.members[0])}", fg="yellow")
        for sign, members in (("-", changed.before), ("+", changed.after), (" ", changed.both)):
            for each in members:
                yield f"  {_line(sign, each, condition_in_words(each) or 'always', ids)}"
    if found:
        yield (
            f"{len(found.only_first)} only in {first}, {len(found.only_second)} only in {second}, "
            f"{len(found.changed)} under other conditions, {found.same} the same"
        )
    else:
        yield f"No difference: {found.same} the same"


def as_object(found: Difference) -> Mapping[str, Any]:
    """Return a difference as plain values, with ids."""
    return {
        "only_in_a": _ids(found.only_first),
        "only_in_b": _ids(found.only_second),
        "changed": [
            {
                "claim": claim_in_words(each.members[0]),
                "a": _ids((*each.before, *each.both)),
                "b": _ids((*each.after, *each.both)),
            }
            for each in found.changed
        ],
        "same": found.same,
    }


def _line(sign: str, invariant: Invariant, text: str, ids: Mapping[str, str]) -> str:
    line = f"{sign} {ids[invariant.id]}  {text}"
    colour = {"-": "red", "+": "green"}.get(sign)
    return click.style(line, fg=colour) if colour else line


def _all(found: Difference) -> Sequence[Invariant]:
    changed = [each for one in found.changed for each in one.members]
    return [*found.only_first, *found.only_second, *changed]


def _ids(invariants: Sequence[Invariant]) -> list[str]:
    return [each.id for each in invariants]
