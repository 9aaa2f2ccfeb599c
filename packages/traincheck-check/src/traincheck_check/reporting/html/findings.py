"""A group of violations as the page tells it: in full, or in a line."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs

from traincheck_check.diagnosing.diagnosis import sources_of
from traincheck_check.reporting.html.evidence import Comparison, compared, held_in_words
from traincheck_trace_schema.results import Timeline, Verdict, Violation, ViolationGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_check.judging.outcome import Outcome
    from traincheck_trace_schema.invariants import Invariant


@attrs.frozen(kw_only=True)
class Found:
    """A group, and the violations in it, the most telling first."""

    group: ViolationGroup
    members: tuple[Violation, ...]

    @property
    def lead(self) -> Violation:
        """The violation that tells most."""
        return self.members[0]

    @property
    def number(self) -> int:
        """What it is called on the page and on the screen."""
        return self.group.id + 1

    @property
    def is_known(self) -> bool:
        """Whether the baseline names all of it."""
        return all(each.known for each in self.members)

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks on which something of it was broken."""
        return tuple(sorted({rank for each in self.members for rank in each.ranks}))

    @property
    def sources(self) -> list[str]:
        """The source lines to look at."""
        return sources_of([each.first for each in self.members])

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of all violations, in their order."""
        return tuple(dict.fromkeys(name for each in self.members for name in each.variables))

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """Those of all violations."""
        return tuple(line for each in self.members for line in each.timeline)


@attrs.frozen(kw_only=True)
class Card:
    """A group that is told in full."""

    found: Found
    verdict: Verdict | None  # on its first violation
    comparison: Comparison
    held: str  # where it held

    @property
    def others(self) -> tuple[Violation, ...]:
        """What was broken with the first."""
        return self.found.members[1:]


def found_in(outcome: Outcome) -> list[Found]:
    """Return the groups of a run as they are ranked."""
    members: defaultdict[int, list[Violation]] = defaultdict(list)
    for each in outcome.summary.violations:
        members[each.group].append(each)
    return [
        Found(group=group, members=tuple(members[group.id]))
        for group in outcome.summary.groups
        if members[group.id]
    ]


def card_of(
    found: Found,
    verdicts: Mapping[str, Verdict],
    invariants: Mapping[str, Invariant],
    max_fields: int,
) -> Card:
    """Tell a group in full.

    Args:
        found: The group.
        verdicts: On what failed, by the id of its invariant.
        invariants: What was checked, by id.
        max_fields: Of a record.
    """
    lead = found.lead
    verdict = verdicts.get(lead.invariant_id)
    evidence = () if verdict is None else verdict.evidence
    comparison = compared(evidence, lead.reference, max_fields)
    held = held_in_words(invariants.get(lead.invariant_id), lead.reference)
    return Card(found=found, verdict=verdict, comparison=comparison, held=held)
