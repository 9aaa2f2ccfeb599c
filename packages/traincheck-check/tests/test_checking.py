"""Checking one run: what holds, what is broken and where, what does not apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.judge import Checked, check_run
from traincheck_check.judging.outcome import Outcome, outcome_of
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariants import ConditionGroup, Invariant
from traincheck_trace_schema.reading import open_runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conftest import WriteRun

FC1, FC2 = "model.fc1.weight", "model.fc2.weight"


def check(folder: Path, claims: Sequence[Invariant]) -> Checked:
    (run,) = open_runs([folder])
    return check_run(run, Claims.of(claims))


def judge(folder: Path, claims: Sequence[Invariant]) -> Outcome:
    return outcome_of(check(folder, claims))


def verdicts(outcome: Outcome) -> dict[str, str]:
    every = (*outcome.failed, *outcome.passed, *outcome.not_triggered)
    return {each.invariant_id: each.verdict for each in every}


def test_a_good_run_breaks_nothing(write_run: WriteRun, claims: tuple[Invariant, ...]) -> None:
    """What applied has passed; what never had an occasion is neither passed nor failed."""
    outcome = judge(write_run(), claims)

    assert verdicts(outcome) == {
        "moves-each": "passed",
        "moves-some": "passed",
        "reaches-each": "passed",
        "clips": "not_triggered",
    }
    assert outcome.summary.complete
    assert (outcome.summary.checked, outcome.summary.passed) == (4, 3)


def test_a_parameter_that_is_left_behind_is_named(
    write_run: WriteRun, claims: tuple[Invariant, ...]
) -> None:
    """The violation says since when, how often, where and which parameter."""
    outcome = judge(write_run(steps=6, stuck=[FC2], since=3), claims)

    (violation,) = outcome.summary.violations
    assert violation.invariant_id == "moves-each"
    assert (violation.first.step, violation.last.step, violation.occurrences) == (3, 5, 3)
    assert (violation.variables, violation.ranks) == ((FC2,), (0,))
    assert violation.first.function == "torch.optim.SGD.step"
    assert violation.first.source == "train.py:10"
    assert violation.first.stage == "training"
    assert FC2 in violation.happened


def test_a_step_that_changes_nothing_breaks_both_quantifiers(
    write_run: WriteRun, claims: tuple[Invariant, ...]
) -> None:
    """Both stand in one group, for they have one cause."""
    outcome = judge(write_run(stuck=[FC1, FC2]), claims)

    assert {each.invariant_id for each in outcome.summary.violations} == {
        "moves-each",
        "moves-some",
    }
    (group,) = outcome.summary.groups
    assert group.first.step == 0
    assert "frozen" in group.look_at


def test_where_the_precondition_does_not_hold_nothing_is_judged(
    write_run: WriteRun, claims: tuple[Invariant, ...]
) -> None:
    """An occasion outside of the precondition is counted as such, whatever happened on it."""
    moves_each = claims[0]
    held_by_none = ConditionGroup(
        inverted=True, preconditions=next(iter(moves_each.precondition.values())).preconditions
    )
    claim = Invariant(
        id="1",
        text_description="",
        relation=moves_each.relation,
        params=moves_each.params,
        precondition=dict.fromkeys(moves_each.precondition, held_by_none),
    )

    (verdict,) = judge(write_run(stuck=[FC1, FC2]), [claim]).not_triggered

    assert verdict.reason == "its precondition was met on none of its 12 occasions"


def test_evidence_is_kept_within_bounds(write_run: WriteRun, claims: tuple[Invariant, ...]) -> None:
    """Some records of the first violations, not all of all."""
    (failed, _) = judge(write_run(steps=50, stuck=[FC1, FC2]), claims).failed

    assert failed.violations == 100
    assert 1 <= len(failed.evidence) <= 6
    assert failed.evidence[0].rank == 0
    assert failed.evidence[0].record["kind"] == "call_begin"


@pytest.mark.parametrize("complete", [True, False])
def test_a_trace_without_its_end_is_incomplete(
    write_run: WriteRun,
    claims: tuple[Invariant, ...],
    complete: bool,  # noqa: FBT001
) -> None:
    """What was recorded is judged all the same."""
    summary = judge(write_run(complete=complete), claims).summary

    assert summary.complete is complete
    assert bool(summary.incomplete_because) is not complete
    assert summary.passed == 3


class Failing:
    """A relation whose monitor fails at the first event."""

    name = "APIContainRelation"
    group = "parent_func_call_pre"

    def __init__(self, real: object) -> None:
        self._real = real

    def monitor(self, params: object) -> object:
        monitor = self._real.monitor(params)
        monitor.on_event = self._fail
        return monitor

    @staticmethod
    def _fail(event: object) -> None:
        del event
        raise ValueError("a bug")


def test_a_relation_that_fails_makes_the_check_incomplete(
    write_run: WriteRun, claims: tuple[Invariant, ...]
) -> None:
    """Its invariants did not pass, and the summary says why."""
    (run,) = open_runs([write_run()])
    real = Claims.of(claims)
    failing = {name: Failing(relation) for name, relation in real.relations.items()}

    outcome = outcome_of(check_run(run, attrs.evolve(real, relations=failing)))

    assert outcome.passed == ()
    assert {each.reason for each in outcome.not_triggered} == {
        "APIContainRelation failed: ValueError: a bug"
    }
    assert outcome.summary.incomplete_because == ("APIContainRelation failed: ValueError: a bug",)


def test_a_precondition_that_is_not_understood_is_refused(
    write_run: WriteRun, claims: tuple[Invariant, ...]
) -> None:
    """To guess at what an invariant means would make its verdict worthless."""
    group = next(iter(claims[0].precondition.values()))
    claim = Invariant(
        id="1",
        text_description="",
        relation="APIContainRelation",
        params=claims[0].params,
        precondition={"child": group},
    )

    with pytest.raises(InvariantError, match="'child' is not understood"):
        check(write_run(), [claim])
