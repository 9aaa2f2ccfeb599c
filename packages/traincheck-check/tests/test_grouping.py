"""Which violations belong together, and which come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.diagnosing.grouping import broken, grouped
from traincheck_check.judging.finding import Finding
from traincheck_relations.api import Example, Position
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from traincheck_trace_schema.invariants import Invariant

SGD = "torch.optim.SGD.step"
BACKWARD = "torch.Tensor.backward"


def finding(
    claim: Invariant, *steps: int, function: str = SGD, variable: str | None = None
) -> Finding:
    found = Finding(claim)
    for step in steps:
        at = Position(
            rank=0,
            window=Window(step, 0, -1),
            stage="training",
            function=function,
            variable=variable,
        )
        found.add(Example(param=0, held=False, context={}, at=at))
    return found


def ids(findings: list[Finding]) -> list[list[str]]:
    return [[each.finding.invariant.id for each in group] for group in grouped(broken(findings))]


def test_what_is_not_broken_is_in_no_group(claims: tuple[Invariant, ...]) -> None:
    """Only violations are grouped."""
    assert ids([finding(claims[0])]) == []


def test_the_same_variable_at_about_the_same_time_has_one_cause(
    claims: tuple[Invariant, ...],
) -> None:
    """A gradient that did not come, and a parameter that did not move in the step after."""
    moves, _, reaches, _ = claims
    found = [
        finding(reaches, 3, function=BACKWARD, variable="w"),
        finding(moves, 3, 4, variable="w"),
    ]

    assert ids(found) == [["moves-each", "reaches-each"]]


def test_other_variables_or_times_have_other_causes(claims: tuple[Invariant, ...]) -> None:
    """The groups are ranked by when they began."""
    moves, some, reaches, _ = claims
    found = [
        finding(moves, 7, variable="w"),
        finding(reaches, 3, function=BACKWARD, variable="v"),
        finding(some, 2, variable="u"),
    ]

    assert ids(found) == [["moves-some"], ["reaches-each"], ["moves-each"]]


def test_a_call_that_is_missing_tells_less_than_a_parameter_that_does_not_move(
    claims: tuple[Invariant, ...],
) -> None:
    """At one step, what is about variables around an optimizer's step comes first."""
    moves, _, reaches, clips = claims
    found = [
        finding(clips, *range(100), function="clip"),
        finding(reaches, *range(50), function=BACKWARD, variable="v"),
        finding(moves, 0, variable="w"),
    ]

    assert ids(found) == [["moves-each"], ["reaches-each"], ["clips"]]


def test_a_violation_may_join_groups(claims: tuple[Invariant, ...]) -> None:
    """What overlaps with both brings two groups together."""
    moves, some, reaches, _ = claims
    both = finding(reaches, 0, function=BACKWARD, variable="v")
    both.variables["w"] = None
    found = [finding(moves, 0, variable="w"), finding(some, 0, variable="v"), both]

    assert ids(found) == [["moves-each", "moves-some", "reaches-each"]]
