"""Infers invariants from runs, in two passes: candidates first, then what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from traincheck_infer.candidates import Candidate, Judgement, judge
from traincheck_infer.outcome import Inference, ReadRun, Reason
from traincheck_infer.progress import Progress
from traincheck_infer.reading import Proposed, Task, collect_in, propose_in
from traincheck_infer.saying_less import Functions, Known, without_implied
from traincheck_infer.wording import invariants_of, without_own_implied
from traincheck_infer.workers import Workers
from traincheck_relations.api import Relation
from traincheck_relations.engine import Fault
from traincheck_trace_schema.reading import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from traincheck_trace_schema.invariants import Invariant, Params

_Given = TypeVar("_Given")


def infer_invariants(
    runs: Sequence[Run],
    relations: Mapping[str, Relation],
    *,
    workers: Workers | None = None,
    min_runs: int = 1,
) -> Inference:
    """Infer the invariants of good runs.

    The same runs give the same invariants, in any order and with any workers. A relation that fails
    is left out altogether: nobody knows what it would have seen.

    Args:
        runs: The runs.
        relations: The relations by name.
        workers: Who reads the runs; None: this process.
        min_runs: In how many runs an invariant must have applied, and held.
    """
    work = _Work(
        runs=tuple(sorted(runs, key=lambda run: run.run_id)),
        relations=relations,
        workers=workers or Workers(Progress(is_terminal=False)),
    )
    proposed = work.propose()
    judgements = {name: judge(of, min_runs) for name, of in work.collect(_claims(proposed)).items()}
    worded = work.word(judgements)
    said = work.say_less(worded, _functions(proposed))
    only_tell = sum(sum(each.not_worth.values()) for each in proposed)
    return Inference(
        invariants=tuple(sorted((one.invariant for of in said.values() for one in of), key=_order)),
        runs=_read_runs(proposed),
        candidates=sum(map(len, judgements.values())) + only_tell,
        left_out=+Counter(
            {
                **_reasons(judgements, said.keys()),
                Reason.ONLY_TELLS: only_tell,
                Reason.IMPLIED: sum(len(worded[name]) - len(said[name]) for name in said),
            }
        ),
        contradicted_by=_contradicted_by(judgements),
        faults=tuple(work.faults),
    )


@attrs.define
class _Work:
    """The runs and relations, and what failed so far."""

    runs: Sequence[Run]
    relations: Mapping[str, Relation]
    workers: Workers
    faults: list[Fault] = attrs.field(factory=list)

    def propose(self) -> list[Proposed]:
        """Let all relations look at all runs."""
        tasks = self._tasks(dict.fromkeys(self.relations, ()))
        proposed = self.workers.run("looking for candidates", propose_in, tasks)
        self._note(fault for each in proposed for fault in each.faults)
        return proposed

    def collect(self, claims: Mapping[str, Sequence[Params]]) -> dict[str, list[Candidate]]:
        """Follow candidates through all runs."""
        candidates = {name: list(map(Candidate, of)) for name, of in claims.items()}
        followed = {name: of for name, of in claims.items() if of and not self._has_failed(name)}
        collected = (
            self.workers.run("following candidates", collect_in, self._tasks(followed))
            if followed
            else []
        )
        self._note(fault for each in collected for fault in each.faults)
        for each in collected:
            for name, tallies in each.tallies.items():
                for candidate, tally in zip(candidates[name], tallies, strict=True):
                    candidate.add(each.run_id, tally)
        return candidates

    def word(self, judgements: Mapping[str, list[Judgement]]) -> dict[str, list[Known]]:
        """Make the invariants of each relation that did not fail."""
        trackers = {shard.header.tracker for run in self.runs for shard in run.shards}
        tracker = trackers.pop() if len(trackers) == 1 else None
        return self._of_each(
            judgements,
            lambda relation, of: list(invariants_of(relation, of, tracker)),
        )

    def say_less(
        self, worded: Mapping[str, Sequence[Known]], functions: Functions
    ) -> dict[str, list[Known]]:
        """Drop what other invariants imply; return what is left of each relation."""
        left: dict[str, list[Known]] = {name: [] for name in worded}
        for one in without_implied((one for of in worded.values() for one in of), functions):
            left[one.invariant.relation].append(one)
        return self._of_each(left, without_own_implied)

    def _of_each(
        self,
        given: Mapping[str, list[_Given]],
        ask: Callable[[Relation, list[_Given]], list[Known]],
    ) -> dict[str, list[Known]]:
        """Ask each relation that did not fail; one that raises has failed."""
        answers = {}
        for name, of in given.items():
            if self._has_failed(name):
                continue
            try:
                answers[name] = ask(self.relations[name], of)
            except Exception as error:  # noqa: BLE001  a plugin may fail in any way; it is told
                self.faults.append(Fault(name, f"{type(error).__name__}: {error}"))
        return answers

    def _tasks(self, claims: Mapping[str, Sequence[Params]]) -> list[Task]:
        return [
            Task(
                run=run,
                relations={name: self.relations[name] for name in names},
                claims={name: claims[name] for name in names},
            )
            for run in self.runs
            for names in self.workers.groups(claims, len(self.runs))
        ]

    def _note(self, faults: Iterable[Fault]) -> None:
        """Take faults, the first of each relation."""
        for fault in faults:
            if not self._has_failed(fault.relation):
                self.faults.append(fault)

    def _has_failed(self, name: str) -> bool:
        return any(fault.relation == name for fault in self.faults)


def _claims(proposed: Iterable[Proposed]) -> dict[str, list[Params]]:
    """Put together what was proposed in all runs, in an order that does not depend on theirs."""
    united: dict[str, set[Params]] = {}
    for each in proposed:
        for name, claims in each.claims.items():
            united.setdefault(name, set()).update(claims)
    return {name: sorted(united[name], key=repr) for name in sorted(united)}


def _functions(proposed: Iterable[Proposed]) -> Functions:
    bases: dict[str, tuple[str, ...]] = {}
    callers: dict[str, frozenset[str | None]] = {}
    for each in proposed:
        bases |= each.seen.bases
        for name, of in each.callers.items():
            callers[name] = callers.get(name, frozenset()) | of
    return Functions(bases, callers)


def _read_runs(proposed: Iterable[Proposed]) -> tuple[ReadRun, ...]:
    """Return what was read of each run, of which several groups of relations told."""
    runs = {
        each.run_id: ReadRun(
            run_id=each.run_id,
            folder=each.folder,
            steps=each.seen.steps,
            records=each.seen.events,
            incomplete_because=each.incomplete_because,
            notes=each.notes,
        )
        for each in proposed
    }
    return tuple(runs.values())


def _reasons(
    judgements: Mapping[str, Sequence[Judgement]], sound: Collection[str]
) -> Counter[Reason]:
    """Count the candidates that are no invariants, by reason."""
    reasons = (
        one.reason if name in sound else Reason.FAULT
        for name, of in judgements.items()
        for one in of
    )
    return Counter(reason for reason in reasons if reason is not None)


def _contradicted_by(judgements: Mapping[str, Sequence[Judgement]]) -> Counter[str]:
    return Counter(
        run_id
        for of in judgements.values()
        for one in of
        if one.reason is Reason.CONTRADICTED
        for run_id in one.candidate.contradicting()
    )


def _order(invariant: Invariant) -> tuple[float, str]:
    """Put first what is most likely a bug when it is broken."""
    return -(invariant.likelihood or 0), invariant.id
