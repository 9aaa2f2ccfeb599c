"""Which violations belong together, and which come first."""

from __future__ import annotations

import attrs

from traincheck_check.diagnosing.grouping import broken, grouped
from traincheck_check.judging.finding import Finding
from traincheck_relations.api import Example, Position
from traincheck_trace_schema.invariants import (
    APIParam,
    InputOutputParam,
    Invariant,
    OccasionParam,
    VarNameParam,
)
from traincheck_trace_schema.window import Window

SGD = "torch.optim.SGD.step"
BACKWARD = "torch.Tensor.backward"


def finding(
    claim: Invariant, *steps: int, function: str = SGD, variable: str | None = None, more: str = ""
) -> Finding:
    found = Finding(claim)
    for step, name in [(step, name) for step in steps for name in (variable, *more.split())]:
        at = Position(
            rank=0,
            window=Window(step, 0, -1),
            stage="training",
            function=function,
            variable=name,
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
    moves, _, reaches, _ = claims
    found = [
        finding(moves, 7, variable="w"),
        finding(reaches, 3, function=BACKWARD, variable="v"),
        finding(attrs.evolve(moves, id="early"), 2, variable="u"),
    ]

    assert ids(found) == [["early"], ["reaches-each"], ["moves-each"]]


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


def about(name: str, **param: object) -> Invariant:
    """Claim that a flag of a part of the model has a value."""
    variable = VarNameParam(var_name=name, const_value=False, **{"attr_name": "training", **param})
    return Invariant(
        id=f"{name} {param}",
        text_description="",
        relation="State",
        params=(variable, OccasionParam(phase="step_end")),
        precondition={},
    )


def calls(*names: str, id_: str, likelihood: float | None = None) -> Invariant:
    return Invariant(
        id=id_,
        text_description="",
        relation="Order",
        params=tuple(APIParam(api_full_name=name) for name in names),
        precondition={},
        likelihood=likelihood,
    )


def test_the_same_of_several_parts_has_one_cause() -> None:
    """A part that was to be frozen, and another one."""
    one, other = (about(name, attr_name="requires_grad") for name in ("model.a", "model.b"))
    found = [finding(one, 0, variable="model.a"), finding(other, 1, variable="model.b")]

    assert ids(found) == [[one.id, other.id]]


def test_a_part_and_what_it_is_part_of_have_one_cause(claims: tuple[Invariant, ...]) -> None:
    """A model in evaluation mode, and a buffer that therefore stays as it is."""
    whole, moves = about("model"), claims[0]
    found = [
        finding(moves, 0, variable="model.norm.weight"),
        finding(whole, 0, variable="model"),
        finding(attrs.evolve(claims[2], id="other"), 0, function="f", variable="modelled"),
    ]

    assert ids(found) == [[whole.id, moves.id], ["other"]]


def test_where_nothing_at_all_is_updated_whatever_is_wrong_belongs_to_it(
    claims: tuple[Invariant, ...],
) -> None:
    """It names no variable since it is about all of them."""
    _, some, reaches, clips = claims
    found = [
        finding(reaches, 0, function=BACKWARD, variable="w"),
        finding(some, 0),
        finding(clips, 0, function="clip"),
    ]

    assert ids(found) == [["moves-some", "reaches-each"], ["clips"]]


def test_modes_have_one_cause() -> None:
    """The flag of a module, and the argument of a function that is called with it."""
    argument = InputOutputParam(name="training", type="bool", api_name="f", is_input=True)
    told = attrs.evolve(calls(id_="told"), params=(argument,))
    flag = about("model.a")
    found = [finding(told, 0, function="f"), finding(flag, 0, variable="model.a")]

    assert ids(found) == [[flag.id, "told"]]


def test_calls_have_one_cause_if_one_claim_is_about_no_others() -> None:
    """That gradients are never cleared, and that nothing clears them after a step."""
    found = [
        finding(calls("step", "zero", id_="after"), 0, function="step"),
        finding(calls("zero", id_="count"), 0, function="zero"),
        finding(calls("scale", "zero", id_="other"), 0, function="scale"),
        finding(calls("clip", id_="clip"), 0, function="clip"),
    ]

    assert ids(found) == [["after", "count", "other"], ["clip"]]


def test_what_is_likelier_a_bug_comes_first() -> None:
    """Of what tells as much; then what happened more often."""
    found = [
        finding(calls("f", id_="often", likelihood=0.4), 0, 1, 2, function="f"),
        finding(calls("g", id_="likely", likelihood=0.9), 0, function="g"),
        finding(calls("h", id_="unknown"), 0, 1, 2, 3, function="h"),
    ]

    assert ids(found) == [["likely"], ["often"], ["unknown"]]


def test_what_tells_most_leads_though_it_came_a_step_later(
    claims: tuple[Invariant, ...],
) -> None:
    """As the update that is missing, after a call that is missing in it."""
    moves = claims[0]
    found = [finding(calls("f", id_="call"), 0), finding(moves, 1, variable="w")]

    assert ids(found) == [["moves-each", "call"]]


def test_what_came_later_does_not_lead_however_much_it_tells(
    claims: tuple[Invariant, ...],
) -> None:
    """It followed from what followed from the first."""
    moves, _, reaches, _ = claims
    buffer = attrs.evolve(reaches, id="first", relation="Buffers")
    found = [
        finding(moves, 2, variable="w"),
        finding(attrs.evolve(reaches, id="then"), 1, function=BACKWARD, variable="w"),
        finding(buffer, 0, function=BACKWARD, variable="w"),
    ]

    assert ids(found) == [["first", "then", "moves-each"]]


def test_a_violation_may_join_groups(claims: tuple[Invariant, ...]) -> None:
    """What overlaps with both brings two groups together."""
    moves, _, reaches, _ = claims
    flag = about("v", attr_name="requires_grad")
    apart = [finding(moves, 0, variable="w"), finding(flag, 0, variable="v")]
    both = finding(reaches, 0, function=BACKWARD, variable="v", more="w")

    assert ids(apart) == [[flag.id], ["moves-each"]]
    assert ids([*apart, both]) == [[flag.id, "moves-each", "reaches-each"]]
