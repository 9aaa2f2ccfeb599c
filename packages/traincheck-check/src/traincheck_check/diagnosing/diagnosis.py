"""Puts a group of violations in words: what was expected, what happened, since when, where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.diagnosing.causes import usual_causes
from traincheck_trace_schema.results import ViolationGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traincheck_check.diagnosing.grouping import Broken
    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.occasion import Place

_SHOWN = 4  # names in a sentence


def group_of(
    id_: int, members: Sequence[Broken], relations: Mapping[str, Relation]
) -> ViolationGroup:
    """Describe a group by its first member, which tells most.

    Args:
        id_: The number of the group.
        members: Its violations.
        relations: Those that they are about, by name.
    """
    lead = members[0]
    return ViolationGroup(
        id=id_,
        title=title_of(lead.finding.happened, lead.finding.invariant.text_description),
        diagnosis=" ".join(f"{sentence}." for sentence in _sentences(lead, members)),
        look_at=_look_at(members, relations),
        first=lead.first,
        invariant_ids=tuple(each.finding.invariant.id for each in members),
    )


def title_of(happened: str, claim: str) -> str:
    """Say in a line what went wrong."""
    return happened.rstrip(".") or f"Broken: {claim}"


def times(number: int) -> str:
    """Say how often."""
    return "once" if number == 1 else f"{number:,} times"


def how_often(violations: int, occasions: int) -> str:
    """Say on how many of its occasions something was broken.

    >>> how_often(3, 12)
    'on 3 of 12 occasions'
    """
    if violations == 1 == occasions:
        return "on its one occasion"
    which = f"all {occasions:,}" if violations == occasions else f"{violations:,} of {occasions:,}"
    return f"on {which} occasions"


def some_of(names: Iterable[str]) -> str:
    """List the first few names, and how many more there are.

    >>> some_of("abcdef")
    'a, b, c, d and 2 more'
    """
    known = list(names)
    more = len(known) - _SHOWN
    return f"{', '.join(known[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"


def on_ranks(ranks: Sequence[int]) -> str:
    """Say on which ranks."""
    return f"on rank{'s' if len(ranks) > 1 else ''} {some_of(map(str, ranks))}"


def sources_of(firsts: Sequence[Place]) -> list[str]:
    """Return the source lines of what began at the same step as the first, each once."""
    begun = firsts[0].step
    return [*dict.fromkeys(each.source for each in firsts if each.source and each.step == begun)]


def _sentences(lead: Broken, members: Sequence[Broken]) -> Iterator[str]:
    finding = lead.finding
    ranks = sorted({rank for each in members for rank in each.finding.ranks})
    variables = dict.fromkeys(name for each in members for name in each.finding.variables)
    yield f"Expected: {finding.invariant.text_description.rstrip('.')}"
    if finding.happened:
        yield f"Happened: {finding.happened.rstrip('.')}"
    since = f"Since {lead.first.when}, {how_often(finding.violations, finding.occasions)}"
    if lead.last.step != lead.first.step:
        since += f", last at {lead.last.when}"
    since += f"; {on_ranks(ranks)}"
    if sources := sources_of([each.first for each in members]):
        since += f"; at {some_of(sources)}"
    yield since
    if variables:
        yield f"Variables: {some_of(variables)}"
    yield from _in_reference(finding.invariant)
    titles = (
        title_of(each.finding.happened, each.finding.invariant.text_description) for each in members
    )
    if others := [*dict.fromkeys(titles)][1:]:
        more = len(others) - _SHOWN
        told = "; ".join(others[:_SHOWN])
        yield f"With it: {told}{f'; and {more} more' if more > 0 else ''}"


def _in_reference(invariant: Invariant) -> Iterator[str]:
    """Say how it was where the invariant was learnt, as far as that is known."""
    runs, held, first = invariant.runs, invariant.num_positive_examples, invariant.reference
    if not held:
        return
    where = f"{len(runs)} reference runs" if len(runs) > 1 else "reference run"
    text = f"In the {where} it held {f'on {held:,} occasions' if held > 1 else 'once'}"
    if first is not None:
        text += f", first at {first.at.when}"
        if first.at.source is not None:
            text += f", at {first.at.source}"
    yield text


def _look_at(members: Sequence[Broken], relations: Mapping[str, Relation]) -> str:
    causes = (usual_causes(each.finding.invariant, relations) for each in members)
    if text := next(filter(None, causes), ""):
        return text
    if sources_of([each.first for each in members]):
        return "the source line, and the records in failed.log that show what happened there"
    return "the records in failed.log that show what happened"
