"""The results of checking (document `traincheck.results`): the summary and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from traincheck_trace_schema.constraints import Count, Number, StepNumber, Version1
from traincheck_trace_schema.values import Json

SCHEMA: Final = "traincheck.results"
VERSION: Final = "1.0"


@attrs.frozen(kw_only=True)
class Place:
    """Where something happened. `step` is the training step, -1 before the first."""

    step: StepNumber
    eval_step: Count | None = None
    stage: str
    rank: Count
    function: str | None = None
    variable: str | None = None
    source: str | None = None  # "file:line" of user code


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
class Summary:
    """The content of `violations_summary.json`; `checked` is without what is `suppressed`."""

    schema: Literal["traincheck.results"] = SCHEMA
    version: Version1 = VERSION
    run_ids: tuple[str, ...] = ()
    checked: Count
    failed: Count
    passed: Count
    not_triggered: Count
    suppressed: Count = 0
    complete: bool
    incomplete_because: tuple[str, ...] = ()
    violations: tuple[Violation, ...]
    groups: tuple[ViolationGroup, ...] = ()
    suppressions: tuple[Suppressed, ...] = ()


@attrs.frozen(kw_only=True)
class Evidence:
    """A record of the trace, and which rank wrote it into which shard."""

    rank: Count
    shard: str
    record: Mapping[str, Json]


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
    first: Place | None = None
    evidence: tuple[Evidence, ...] = ()
