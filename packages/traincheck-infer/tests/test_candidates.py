"""What becomes of the candidates of a relation."""

from __future__ import annotations

import pytest

from traincheck_infer.candidates import Candidate, judge
from traincheck_infer.outcome import Reason
from traincheck_infer.tally import Tally, frozen
from traincheck_relations.api import Context, Example, Position
from traincheck_relations.conditions.preconditions import holds
from traincheck_relations.conditions.properties import MODEL
from traincheck_trace_schema.invariants import APIParam
from traincheck_trace_schema.window import Window


def candidate(name: str, held: int, broken: int = 0, run: str = "run") -> Candidate:
    """Return a candidate that held in so many steps, and then in others did not."""
    made = Candidate((APIParam(api_full_name=name),))
    add(made, held, broken, run)
    return made


def add(to: Candidate, held: int, broken: int, run: str, context: Context | None = None) -> None:
    tally = Tally()
    for step in range(held + broken):
        at = Position(rank=0, window=Window(step, 0, -1), stage="training")
        example = Example(param=0, held=step < held, context=context or {}, at=at)
        tally.add(example, frozen(example.context))
    to.add(run, tally)


@pytest.mark.parametrize(
    ("held", "broken", "reason"),
    [(5, 0, None), (4, 0, Reason.CHANCE), (0, 9, Reason.NEVER), (9, 9, Reason.NO_PRECONDITION)],
)
def test_a_candidate_alone(held: int, broken: int, reason: Reason | None) -> None:
    """It is judged by its occasions."""
    (judged,) = judge([candidate("f", held, broken)], min_runs=1)

    assert judged.reason is reason
    assert bool(judged.preconditions) is (reason is None)


def test_refuted_guesses_ask_for_more_occasions() -> None:
    """Where nine guesses of ten are wrong, five steps do not speak for the tenth; twelve do."""
    refuted = [candidate(str(number), 9, 9) for number in range(9)]

    few, *_ = judge([candidate("f", 5), *refuted], min_runs=1)
    many, *_ = judge([candidate("f", 12), *refuted], min_runs=1)

    assert few.reason is Reason.CHANCE
    assert many.reason is None


def test_guesses_that_could_not_be_accepted_do_not_count() -> None:
    """Five steps are enough, whatever else was guessed from single occasions."""
    seldom = [candidate(str(number), 1) for number in range(99)]

    first, *others = judge([candidate("f", 5), *seldom], min_runs=1)

    assert first.reason is None
    assert {one.reason for one in others} == {Reason.CHANCE}


def test_a_run_that_contradicts_another_is_told_from_one_that_is_mixed() -> None:
    """Only where it always held in some run, another contradicts it."""
    one, mixed = candidate("f", 9, run="a"), candidate("g", 9, 2, run="a")
    for each in (one, mixed):
        add(each, 3, 2, "b")

    assert [each.reason for each in judge([one, mixed], min_runs=1)] == [
        Reason.CONTRADICTED,
        Reason.NO_PRECONDITION,
    ]
    assert one.contradicting() == ["b"]


@pytest.mark.parametrize(
    ("name", "elsewhere"), [("__main__.Net.forward", False), ("torch.nn.Linear.forward", True)]
)
def test_what_a_program_defines_itself_is_claimed_of_its_model(name: str, elsewhere: bool) -> None:  # noqa: FBT001  a case
    """Another script may have another function of that name; what torch defines is one."""
    made = Candidate((APIParam(api_full_name=name),))
    add(made, 9, 0, "run", {MODEL: "a"})

    (judged,) = judge([made], min_runs=1)

    (group,) = judged.preconditions
    assert holds(group, {MODEL: "a"})
    assert holds(group, {MODEL: "b"}) is elsewhere
