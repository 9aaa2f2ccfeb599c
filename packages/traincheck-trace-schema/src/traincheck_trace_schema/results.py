"""The results of checking (document `traincheck.results`): the summary and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from traincheck_trace_schema.values import Json

SCHEMA = "traincheck.results"
VERSION = "1.0"


@attrs.frozen(kw_only=True)
class Place:
    """Where something happened. `step` is the training step, -1 before the first."""

    step: int
    eval_step: int | None = None
    stage: str
    rank: int
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
    occurrences: int
    ranks: tuple[int, ...]
    variables: tuple[str, ...] = ()
    happened: str = ""  # what was seen instead, in words
    group: int


@attrs.frozen(kw_only=True)
class ViolationGroup:
    """Violations that are likely to have one cause, and what to make of them."""

    id: int
    title: str
    diagnosis: str
    look_at: str
    first: Place
    invariant_ids: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Summary:
    """The content of `violations_summary.json`."""

    schema: str = SCHEMA
    version: str = VERSION
    run_ids: tuple[str, ...] = ()
    checked: int
    failed: int
    passed: int
    not_triggered: int
    complete: bool
    incomplete_because: tuple[str, ...] = ()
    violations: tuple[Violation, ...]
    groups: tuple[ViolationGroup, ...] = ()


@attrs.frozen(kw_only=True)
class Evidence:
    """A record of the trace, and which rank wrote it into which shard."""

    rank: int
    shard: str
    record: Mapping[str, Json]


@attrs.frozen(kw_only=True)
class Verdict:
    """One line of `failed.log`, `passed.log` or `not_triggered.log`."""

    schema: str = SCHEMA
    version: str = VERSION
    invariant_id: str
    relation: str
    text_description: str
    verdict: Literal["failed", "passed", "not_triggered"]
    occasions: int  # on which its precondition held
    violations: int
    reason: str = ""  # why it was not triggered
    first: Place | None = None
    evidence: tuple[Evidence, ...] = ()
