"""Judges one run, item by item: the same for a run that has ended and for one that goes on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.finding import Finding
from traincheck_check.judging.progress import KINDS, Progress
from traincheck_check.judging.unrecorded import unrecorded
from traincheck_relations.conditions.preconditions import (
    Test,
    always,
    compile_group,
    condition_of,
)
from traincheck_relations.engine import Fault, Monitors, Seen
from traincheck_trace_schema.reading import StreamItem
from traincheck_trace_schema.results import RankProgress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_relations.api import Example, Relation
    from traincheck_trace_schema.invariants import Params
    from traincheck_trace_schema.reading import Run, Shard, WindowEnd

_Guarded: TypeAlias = "tuple[Test, Finding]"


class Trace(Protocol):
    """The trace of a run, which has ended or goes on."""

    @property
    def run_id(self) -> str | None:
        """The run's id; None before there is a header."""

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards that were seen so far."""

    def incomplete_because(self) -> tuple[str, ...]:
        """Say why the trace is not all that happened; empty if it is."""

    def notes(self) -> tuple[str, ...]:
        """Say what was left out while reading."""


@attrs.frozen(kw_only=True)
class Checked:
    """What checking a run found out so far; `findings` has one for each invariant, in order."""

    trace: Trace
    claims: Claims
    findings: tuple[Finding, ...]
    seen: Seen
    ranks: tuple[RankProgress, ...]
    faults: tuple[Fault, ...]
    unchecked: Mapping[str, str] = attrs.field(factory=dict)  # id of an invariant: why
    running: bool = False
    cut_short: str = ""  # why the trace was not read to its end

    @property
    def incomplete_because(self) -> tuple[str, ...]:
        """Why "no violation" would not be the whole truth; empty if it is."""
        failures = (f"{fault.relation} failed: {fault.error}" for fault in self.faults)
        if self.running:
            losses: tuple[str, ...] = ("the run goes on",)
        else:
            losses = (self.cut_short,) if self.cut_short else self.trace.incomplete_because()
        return (*losses, *failures)


class Judge:
    """Judges a run by all claims; give it the items of the stream one after the other."""

    def __init__(self, trace: Trace, claims: Claims) -> None:
        self._trace = trace
        self._claims = claims
        self._findings = tuple(map(Finding, claims.invariants))
        checkable = [one for one in self._findings if one.invariant.id not in claims.unchecked]
        guarded = _by_claim(checkable, claims.relations)
        self._guarded = {name: tuple(of.values()) for name, of in guarded.items()}
        self._monitors = Monitors(
            trace,
            claims.relations,
            {name: tuple(of) for name, of in guarded.items()},
            {name: _unconditional(of) for name, of in self._guarded.items()},
        )
        self._progress = Progress(trace)
        self._is_running = True
        self._cut_short = ""
        self.violations = 0  # occasions on which something was broken, so far

    def take(self, item: StreamItem | WindowEnd) -> None:
        """Take the next item.

        Raises:
            TraceError: A record of the trace can't be read.
        """
        if isinstance(item, StreamItem) and item.record["kind"] in KINDS:
            self._progress.take(item)
        if examples := self._monitors.take(item):
            self._weigh(examples)

    def finish(self, *, is_complete: bool, why: str = "") -> None:
        """The run is over; is its trace all that happened? If it was not read to its end, why?"""
        self._weigh(self._monitors.finish(is_complete=is_complete))
        self._is_running = False
        self._cut_short = why

    def checked(self) -> Checked:
        """Return what was found out so far."""
        seen = self._monitors.seen
        silent = unrecorded(self._trace.shards, self._findings, seen)
        return Checked(
            trace=self._trace,
            claims=self._claims,
            findings=tuple(
                Finding(one.invariant) if one.invariant.id in silent else one
                for one in self._findings
            ),
            seen=seen,
            ranks=self._progress.ranks(),
            faults=tuple(self._monitors.faults),
            unchecked={**self._claims.unchecked, **silent},
            running=self._is_running,
            cut_short=self._cut_short,
        )

    def _weigh(self, examples: Iterable[tuple[str, Example]]) -> None:
        for name, example in examples:
            for condition, finding in self._guarded[name][example.param]:
                if condition is always or condition(example.context):
                    finding.add(example)
                    self.violations += not example.held
                else:
                    finding.unmet += 1


def _unconditional(guarded: Sequence[Sequence[_Guarded]]) -> frozenset[int]:
    """Return the places of the claims that hold whatever the context."""
    return frozenset(
        at for at, same in enumerate(guarded) if all(condition is always for condition, _ in same)
    )


def check_run(run: Run, claims: Claims) -> Checked:
    """Check a run that has ended.

    Raises:
        TraceError: The trace cannot be read.
    """
    judge = Judge(run, claims)
    for item in run.stream():
        judge.take(item)
    # Whether the trace is complete is known only now that it was read to its end.
    judge.finish(is_complete=not run.incomplete_because())
    return judge.checked()


def _by_claim(
    findings: Sequence[Finding], relations: Mapping[str, Relation]
) -> Mapping[str, Mapping[Params, Sequence[_Guarded]]]:
    """Bring together what differs in its precondition only: one monitor follows each claim."""
    claims: defaultdict[str, dict[Params, list[_Guarded]]] = defaultdict(dict)
    for finding in findings:
        invariant = finding.invariant
        condition = compile_group(condition_of(invariant, relations[invariant.relation]))
        same = claims[invariant.relation].setdefault(invariant.params, [])
        same.append((condition, finding))
    return claims
