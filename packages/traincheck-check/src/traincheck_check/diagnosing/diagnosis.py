"""Puts a group of violations in words: what was expected, what happened, since when, where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.diagnosing.causes import pattern_of, usual_causes
from traincheck_trace_schema.results import ViolationGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_check.diagnosing.grouping import Broken
    from traincheck_trace_schema.occasion import Place

_SHOWN = 4  # names in a sentence


def group_of(id_: int, members: Sequence[Broken]) -> ViolationGroup:
    """Describe a group by its first member, which tells most."""
    lead = members[0]
    return ViolationGroup(
        id=id_,
        title=_title(lead),
        diagnosis=_diagnosis(lead, members),
        look_at=_look_at(members),
        first=lead.first,
        invariant_ids=tuple(each.finding.invariant.id for each in members),
    )


def when(place: Place) -> str:
    """Say when something happened.

    >>> from traincheck_trace_schema.occasion import Place
    >>> when(Place(step=3, stage="training", rank=0))
    'step 3 (training)'
    """
    if place.step < 0:
        return f"before the first step ({place.stage})"
    evaluation = "" if place.eval_step is None else f", evaluation step {place.eval_step}"
    return f"step {place.step}{evaluation} ({place.stage})"


def times(number: int) -> str:
    """Say how often."""
    return "once" if number == 1 else f"{number:,} times"


def some_of(names: Iterable[str]) -> str:
    """List the first few names, and how many more there are.

    >>> some_of("abcdef")
    'a, b, c, d and 2 more'
    """
    known = list(names)
    more = len(known) - _SHOWN
    return f"{', '.join(known[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"


def _title(lead: Broken) -> str:
    happened = lead.finding.happened.rstrip(".")
    return happened or f"Broken: {lead.finding.invariant.text_description}"


def _diagnosis(lead: Broken, members: Sequence[Broken]) -> str:
    finding = lead.finding
    ranks = sorted({rank for each in members for rank in each.finding.ranks})
    variables = dict.fromkeys(name for each in members for name in each.finding.variables)
    since = f"Since {when(lead.first)}, {times(finding.violations)}"
    if lead.last.step != lead.first.step:
        since += f", last at {when(lead.last)}"
    since += f"; on rank{'s' if len(ranks) > 1 else ''} {some_of(map(str, ranks))}"
    if lead.first.source is not None:
        since += f"; at {lead.first.source}"
    sentences = [f"Expected: {finding.invariant.text_description.rstrip('.')}"]
    if finding.happened:
        sentences.append(f"Happened: {finding.happened.rstrip('.')}")
    sentences.append(since)
    if variables:
        sentences.append(f"Variables: {some_of(variables)}")
    return "".join(f"{sentence}. " for sentence in sentences).rstrip()


def _look_at(members: Sequence[Broken]) -> str:
    causes = (usual_causes(pattern_of(each.finding.invariant)) for each in members)
    return next(
        (text for text in causes if text), "the source line, and the evidence in failed.log"
    )
