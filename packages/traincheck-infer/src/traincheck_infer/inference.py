"""Infers invariants from runs, in two passes: candidates first, then what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from traincheck_infer.confidence import is_confident, is_no_accident
from traincheck_infer.saying_less import without_implied
from traincheck_infer.tally import Tally
from traincheck_relations.engine import Fault, Seen, Watch, propose
from traincheck_relations.preconditions import in_words
from traincheck_relations.separation import separate
from traincheck_trace_schema.invariant_file import invariant_id
from traincheck_trace_schema.invariants import Invariant, Params

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import ConditionGroup
    from traincheck_trace_schema.reading import Run


@attrs.frozen(kw_only=True)
class Inference:
    """What was inferred, and from what."""

    invariants: tuple[Invariant, ...]
    candidates: int
    records: int
    steps: Mapping[str, int]  # of each run, by its id
    faults: tuple[Fault, ...]


def infer_invariants(runs: Sequence[Run], relations: Mapping[str, Relation]) -> Inference:
    """Infer the invariants of good runs. The same runs give the same invariants, in any order.

    A relation that fails in one run is left out altogether: nobody knows what it would have seen.
    """
    first = _Pass()
    for run in runs:
        first.propose(run, relations)
    tallies = {
        name: {params: Tally() for params in sorted(claims, key=repr)}
        for name, claims in first.candidates.items()
    }
    for run in runs:
        first.faults += _collect(run, relations, tallies)
    for fault in first.faults:
        tallies.pop(fault.relation, None)
    accepted = _accepted(tallies, relations, first.steps(), _tracker(runs))
    return Inference(
        invariants=tuple(sorted(without_implied(accepted, first.bases), key=_order)),
        candidates=sum(map(len, tallies.values())),
        records=sum(seen.events for seen in first.seen.values()),
        steps={run_id: len(seen.steps) for run_id, seen in first.seen.items()},
        faults=tuple(first.faults),
    )


@attrs.define
class _Pass:
    """The first pass: what may hold in some run, and what the runs showed."""

    candidates: dict[str, set[Params]] = attrs.field(factory=dict)
    faults: list[Fault] = attrs.field(factory=list)
    bases: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    seen: dict[str, Seen] = attrs.field(factory=dict)

    def propose(self, run: Run, relations: Mapping[str, Relation]) -> None:
        """Look at a run."""
        proposals = propose(run, relations)
        for name, claims in proposals.candidates.items():
            self.candidates.setdefault(name, set()).update(claims)
        self.faults += proposals.faults
        self.bases |= proposals.seen.bases
        self.seen[run.run_id] = proposals.seen

    def steps(self) -> int:
        """Return how many training steps there are in all runs."""
        return sum(len(seen.steps) for seen in self.seen.values())


def _collect(
    run: Run, relations: Mapping[str, Relation], tallies: Mapping[str, Mapping[Params, Tally]]
) -> Sequence[Fault]:
    """Count the examples that a run gives of the candidates."""
    watch = Watch(run, relations, {name: tuple(claims) for name, claims in tallies.items()})
    by_index = {name: tuple(claims.values()) for name, claims in tallies.items()}
    for name, example in watch:
        by_index[name][example.param].add(example, run.run_id)
    return watch.faults


def _accepted(
    tallies: Mapping[str, Mapping[Params, Tally]],
    relations: Mapping[str, Relation],
    steps: int,
    tracker: str | None,
) -> Iterator[Invariant]:
    for name, claims in tallies.items():
        for params, tally in claims.items():
            if not is_confident(tally.num_positive, len(tally.windows), steps):
                continue
            groups = separate(
                tally.positives(),
                tally.negatives(),
                incidental_separates=is_no_accident(tally.num_negative),
            )
            for group in groups:
                yield _invariant(relations[name], params, group, tally, tracker)


def _invariant(
    relation: Relation, params: Params, group: ConditionGroup, tally: Tally, tracker: str | None
) -> Invariant:
    precondition = {relation.group: group}
    condition = in_words(group)
    claim = relation.describe(params)
    return Invariant(
        id=invariant_id(relation.name, params, precondition),
        text_description=f"{claim} {condition}" if condition else claim,
        relation=relation.name,
        params=params,
        precondition=precondition,
        num_positive_examples=tally.num_positive,
        num_negative_examples=tally.num_negative,
        runs=tuple(sorted(tally.runs)),
        tracker=tracker,
    )


def _tracker(runs: Sequence[Run]) -> str | None:
    """Return the tracker that all runs were collected with, if it was one."""
    trackers = {shard.header.tracker for run in runs for shard in run.shards}
    return trackers.pop() if len(trackers) == 1 else None


def _order(invariant: Invariant) -> tuple[str, str, str]:
    return invariant.relation, invariant.text_description, invariant.id
