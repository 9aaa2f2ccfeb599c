"""What one process does with one run: let some relations propose, or follow candidates through it.

Each is a function of a task that can be sent to another process or machine, and returns what was
found: never records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_infer.tally import Frozen, Tally, frozen
from traincheck_infer.worth import is_worth_following
from traincheck_relations.api import Relation
from traincheck_relations.engine import Fault, Seen, Tell, Watch, propose
from traincheck_trace_schema.reading import Run

if TYPE_CHECKING:
    from traincheck_relations.api import Context
    from traincheck_trace_schema.invariants import Params

Claims: TypeAlias = "Mapping[str, Sequence[Params]]"  # of each relation


@attrs.frozen(kw_only=True)
class Task:
    """A run, and the relations that look at it. `claims`: what they follow, in the second pass."""

    run: Run
    relations: Mapping[str, Relation]
    claims: Claims = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Proposed:
    """What a run taught in the first pass."""

    run_id: str
    folder: str
    claims: Claims
    not_worth: Mapping[str, int]  # how many proposals of a relation are about what only tells
    faults: tuple[Fault, ...]
    seen: Seen
    callers: Mapping[str, frozenset[str | None]]
    incomplete_because: tuple[str, ...]
    notes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Collected:
    """The examples that a run gave of the claims of each relation, in their order."""

    run_id: str
    tallies: Mapping[str, Sequence[Tally]]
    faults: tuple[Fault, ...]


def folder_of(run: Run) -> str:
    """Return the folder of a run's first shard, which people know better than its id."""
    return str(run.shards[0].path.parent)


def propose_in(task: Task, tell: Tell | None = None) -> Proposed:
    """Read a run and return the candidates of the relations."""
    proposals = propose(task.run, task.relations, tell)
    worth = {
        name: tuple(params for params in claims if is_worth_following(params))
        for name, claims in proposals.candidates.items()
    }
    return Proposed(
        run_id=task.run.run_id,
        folder=folder_of(task.run),
        claims=worth,
        not_worth={
            name: len(claims) - len(worth[name]) for name, claims in proposals.candidates.items()
        },
        faults=proposals.faults,
        seen=proposals.seen,
        callers=proposals.callers,
        incomplete_because=task.run.incomplete_because(),
        notes=task.run.notes(),
    )


def collect_in(task: Task, tell: Tell | None = None) -> Collected:
    """Read a run and count the examples of the claims."""
    tallies = {name: tuple(Tally() for _ in claims) for name, claims in task.claims.items()}
    watch = Watch(task.run, task.relations, task.claims, tell)
    context: Context | None = None
    key: Frozen = ()
    for name, example in watch:
        given = example.context
        if given is not context:  # many claims share one
            context, key = given, frozen(given)
        tallies[name][example.param].add(example, key)
    return Collected(run_id=task.run.run_id, tallies=tallies, faults=tuple(watch.faults))
