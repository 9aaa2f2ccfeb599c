"""A group of violations, in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_check.diagnosing import coverage
from traincheck_check.diagnosing.diagnosis import group_of
from traincheck_check.diagnosing.grouping import broken
from traincheck_check.judging import reasons
from traincheck_check.judging.finding import Finding
from traincheck_relations.api import Example, Position
from traincheck_trace_schema.occasion import Place, Reference
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from traincheck_trace_schema.invariants import Invariant, Params
    from traincheck_trace_schema.results import ViolationGroup

SGD = "torch.optim.SGD.step"


class Quiet:
    """A relation that says nothing of causes."""


class Telling:
    def look_at(self, params: Params) -> str:
        return f"the {len(params)} params"


def finding(claim: Invariant, *broken_at: int, of: int = 4, source: str | None = None) -> Finding:
    found = Finding(claim)
    for step in range(of):
        held = step not in broken_at
        at = Position(
            rank=step % 2, window=Window(step, 0, -1), stage="training", variable="w", source=source
        )
        happened = "" if held else f"{claim.id} was broken"
        found.add(Example(param=0, held=held, context={}, at=at, happened=happened))
    return found


def group(*findings: Finding, relation: object | None = None) -> ViolationGroup:
    relations = {"APIContainRelation": relation or Quiet()}
    return group_of(0, broken(findings), relations)  # type: ignore[arg-type]


def test_a_paragraph_tells_what_was_expected_and_what_happened(
    claims: tuple[Invariant, ...],
) -> None:
    """Since when, how often of all times, on which ranks, where, and what else with it."""
    moves, _, reaches, _ = claims
    told = group(finding(moves, 1, 2, source="train.py:3"), finding(reaches, 1)).diagnosis

    assert told == (
        f"Expected: {moves.text_description}. "
        "Happened: moves-each was broken. "
        "Since step 1 (training), on 2 of 4 occasions, last at step 2 (training); "
        "on ranks 0, 1; at train.py:3. "
        "Variables: w. "
        "With it: reaches-each was broken."
    )


def test_it_compares_with_the_reference(claims: tuple[Invariant, ...]) -> None:
    """How often the same held where it was learnt, and where first."""
    at = Place(step=0, stage="training", rank=0, source="good.py:5")
    learnt = attrs.evolve(claims[0], num_positive_examples=300, runs=("r",))
    shown = attrs.evolve(learnt, runs=("r", "s"), reference=Reference(run="r", at=at))

    assert "In the reference run it held on 300 occasions." in group(finding(learnt, 0)).diagnosis
    assert (
        "In the 2 reference runs it held on 300 occasions, first at step 0 (training), at "
        "good.py:5." in group(finding(shown, 0)).diagnosis
    )


def test_what_is_said_of_causes_is_told(claims: tuple[Invariant, ...]) -> None:
    """By the relation."""
    assert group(finding(claims[0], 0), relation=Telling()).look_at == "the 2 params"


def test_where_nothing_is_known_of_causes_it_points_at_what_there_is(
    claims: tuple[Invariant, ...],
) -> None:
    """No source line is named where none was recorded."""
    with_source = group(finding(claims[0], 0, source="train.py:3")).look_at
    without = group(finding(claims[0], 0)).look_at

    assert "source line" in with_source
    assert "source line" not in without
    assert "failed.log" in with_source
    assert "failed.log" in without


def test_for_each_reason_there_is_something_to_do() -> None:
    """A kind of reason that is new here needs advice, too."""
    source = Path(reasons.__file__).read_text(encoding="utf-8")
    kinds = set(re.findall(r'Reason\(\s*"([^"]+)"', source))

    assert kinds == coverage.ADVICE.keys()
