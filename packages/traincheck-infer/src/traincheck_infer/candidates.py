"""Candidates with the examples that all runs gave of them, and what became of each."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from traincheck_infer.confidence import MAX_CHANCE, acceptable, chance, is_no_accident
from traincheck_infer.first_held import FirstHeld
from traincheck_infer.outcome import Reason
from traincheck_infer.tally import Tally
from traincheck_relations.conditions.own_program import preconditions_of
from traincheck_relations.conditions.preconditions import compile_group
from traincheck_relations.conditions.separation import INCIDENTAL, LAST_RESORT, MAX_VALUES
from traincheck_trace_schema.invariants import ConditionGroup, Params
from traincheck_trace_schema.occasion import Reference
from traincheck_trace_schema.values import Scalar


@attrs.define
class Candidate:
    """A claim, and the examples of it: of all runs together, and how many of each."""

    params: Params
    total: Tally = attrs.field(factory=Tally)
    held: dict[str, int] = attrs.field(factory=dict)  # by run
    broken: dict[str, int] = attrs.field(factory=dict)
    _first: dict[Scalar, tuple[str, FirstHeld]] = attrs.field(factory=dict)  # by model: run, where

    def add(self, run_id: str, tally: Tally) -> None:
        """Take the examples of a run. Runs come in the order of their ids."""
        self.total.merge(tally)
        if tally.num_positive:
            self.held[run_id] = tally.num_positive
        if tally.num_negative:
            self.broken[run_id] = tally.num_negative
        for model, one in tally.first.items():
            if len(self._first) < MAX_VALUES:  # of more models nothing is claimed
                self._first.setdefault(model, (run_id, one))

    @property
    def chance(self) -> float:
        """How probable it is that it held by accident."""
        return chance(self.total.num_positive, self.total.held.windows)

    @property
    def is_tested(self) -> bool:
        """Whether it had so many occasions in training that it could have been accepted."""
        occasions = self.total.num_positive + self.total.num_negative
        windows = self.total.held.windows + self.total.broken.windows
        return self.total.is_in_training and chance(occasions, windows) < MAX_CHANCE

    def contradicting(self) -> Sequence[str]:
        """Return the runs in which it did not hold, if it always held in another."""
        always = self.held.keys() - self.broken.keys()
        return sorted(self.broken) if always else ()

    def preconditions(self) -> Sequence[ConditionGroup]:
        """Return the conditions that tell when it holds; none if nothing tells."""
        total = self.total
        return preconditions_of(
            self.params,
            total.positives(),
            total.negatives(),
            incidental_separates=is_no_accident(
                total.held.windows,
                total.broken.windows,
                total.varying((*INCIDENTAL, *sorted(LAST_RESORT))),
            ),
        )

    def reference(self, condition: ConditionGroup) -> Reference | None:
        """Return where it held first under a condition, in the first run in which it did."""
        is_met = compile_group(condition)
        met = [each for each in self._first.values() if is_met(each[1].context)]
        if not met:
            return None
        run_id, one = min(met, key=_moment)
        return Reference(run=run_id, at=one.at, evidence=one.evidence)


@attrs.frozen
class Judgement:
    """What became of a candidate: the conditions under which it is an invariant, or why not."""

    candidate: Candidate
    preconditions: Sequence[ConditionGroup] = ()
    reason: Reason | None = None


def _moment(each: tuple[str, FirstHeld]) -> tuple[str, bool, int]:
    """Of one run, what is in training comes before what led to it."""
    run_id, one = each
    return run_id, one.at.step < 0, one.at.step


def judge(candidates: Sequence[Candidate], min_runs: int) -> list[Judgement]:
    """Judge all candidates of one relation together: how many there are matters to each."""
    judged = [_judged_alone(one) for one in candidates]
    limit = acceptable(
        one.candidate.chance if one.preconditions else 1.0
        for one in judged
        if one.candidate.is_tested
    )
    return [_judged_among(one, limit, min_runs) for one in judged]


def _judged_alone(candidate: Candidate) -> Judgement:
    if not candidate.held:
        return Judgement(candidate, reason=Reason.NEVER)
    if not candidate.total.is_in_training:
        return Judgement(candidate, reason=Reason.BEFORE_TRAINING)
    if candidate.chance >= MAX_CHANCE:  # which spares the search for a precondition
        return Judgement(candidate, reason=Reason.CHANCE)
    if preconditions := candidate.preconditions():
        return Judgement(candidate, preconditions)
    is_contradicted = bool(candidate.contradicting())
    reason = Reason.CONTRADICTED if is_contradicted else Reason.NO_PRECONDITION
    return Judgement(candidate, reason=reason)


def _judged_among(judged: Judgement, limit: float, min_runs: int) -> Judgement:
    if judged.reason is not None:
        return judged
    if judged.candidate.chance > limit:
        return Judgement(judged.candidate, reason=Reason.CHANCE)
    if len(judged.candidate.held) < min_runs:
        return Judgement(judged.candidate, reason=Reason.FEW_RUNS)
    return judged
