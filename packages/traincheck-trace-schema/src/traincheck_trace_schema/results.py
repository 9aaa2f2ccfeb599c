"""The results of checking (document `traincheck.results`): the summary and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from traincheck_trace_schema.constraints import Count, Number, Share, StepNumber, Version1
from traincheck_trace_schema.occasion import Evidence, Place, Reference

SCHEMA: Final = "traincheck.results"
VERSION: Final = "1.0"


@attrs.frozen(kw_only=True)
class Timeline:
    """On how many occasions of which steps an invariant was broken, on one rank.

    `counts` has them by the first of `width` steps that follow one another.
    """

    rank: Count
    width: Number
    counts: Mapping[str, Number]


@attrs.frozen(kw_only=True)
class Violation:
    """An invariant that was broken: where first and last, how often, on which ranks."""

    invariant_id: str
    relation: str
    text_description: str
    first: Place
    last: Place
    occurrences: Number
    ranks: tuple[Count, ...]
    variables: tuple[str, ...] = ()
    happened: str = ""  # what was seen instead, in words
    group: Count
    known: bool = False  # the baseline names it
    timeline: tuple[Timeline, ...] = ()  # by rank
    evidence: tuple[Evidence, ...] = ()  # records of the trace that show the first occasions
    reference: Reference | None = None  # where it held


@attrs.frozen(kw_only=True)
class ViolationGroup:
    """Violations that are likely to have one cause, and what to make of them."""

    id: Count
    title: str
    diagnosis: str
    look_at: str
    first: Place
    invariant_ids: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Suppressed:
    """Invariants that were not checked, since a suppression matches them."""

    pattern: str
    reason: str
    invariant_ids: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RankProgress:
    """How far the training of a rank came, and how much of it was recorded."""

    rank: Count
    steps: Count  # that began
    recorded: Count  # of these
    first: StepNumber | None = None
    last: StepNumber | None = None
    ended: bool = False  # cleanly
    recording_share: Share | None = None  # the part of its time that recording took


@attrs.frozen(kw_only=True)
class Summary:
    """The content of `violations_summary.json`; `checked` is without what is `suppressed`.

    `known` counts the failed that the baseline names. `unjudged` says of those that were not
    triggered how many are so for which kind of reason.
    """

    schema: Literal["traincheck.results"] = SCHEMA
    version: Version1 = VERSION
    run_ids: tuple[str, ...] = ()
    checked: Count
    failed: Count
    passed: Count
    not_triggered: Count
    suppressed: Count = 0
    known: Count = 0
    running: bool = False  # the run goes on, and more may follow
    complete: bool
    incomplete_because: tuple[str, ...] = ()
    violations: tuple[Violation, ...]
    groups: tuple[ViolationGroup, ...] = ()
    suppressions: tuple[Suppressed, ...] = ()
    unjudged: Mapping[str, Count] = attrs.field(factory=dict)
    ranks: tuple[RankProgress, ...] = ()


@attrs.frozen(kw_only=True)
class Verdict:
    """One line of `failed.log`, `passed.log` or `not_triggered.log`."""

    schema: Literal["traincheck.results"] = SCHEMA
    version: Version1 = VERSION
    invariant_id: str
    relation: str
    text_description: str
    verdict: Literal["failed", "passed", "not_triggered"]
    occasions: Count  # on which its precondition held
    violations: Count
    reason: str = ""  # why it was not triggered
    reason_kind: str = ""  # as "not called": what `unjudged` counts
    first: Place | None = None
    evidence: tuple[Evidence, ...] = ()
