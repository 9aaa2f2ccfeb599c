"""The first screen."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from traincheck_check.judging.outcome import Outcome
from traincheck_check.reporting.api import Report
from traincheck_check.reporting.screen import MAX_GROUPS, screen, wrapped
from traincheck_trace_schema.occasion import Place, Reference
from traincheck_trace_schema.results import (
    RankProgress,
    Summary,
    Suppressed,
    Verdict,
    Violation,
    ViolationGroup,
)

FOLDER = Path("results")


def summary(groups: int = 0, *, checked: int = 50) -> Summary:
    first = Place(step=0, stage="training", rank=0, function="f")
    return Summary(
        checked=checked,
        failed=groups,
        passed=checked - groups,
        not_triggered=0,
        complete=True,
        violations=tuple(
            Violation(
                invariant_id=str(number),
                relation="Toy",
                text_description=f"claim {number}",
                first=first,
                last=first,
                occurrences=1,
                ranks=(0,),
                group=number,
            )
            for number in range(groups)
        ),
        groups=tuple(
            ViolationGroup(
                id=number,
                title=f"title {number}",
                diagnosis="",
                look_at="the weather",
                first=first,
                invariant_ids=(str(number),),
            )
            for number in range(groups)
        ),
    )


def lines(
    told: Summary,
    name: str = "",
    *,
    failed: tuple[Verdict, ...] = (),
    passed: tuple[Verdict, ...] = (),
) -> list[str]:
    outcome = Outcome(summary=told, failed=failed, passed=passed, not_triggered=())
    report = Report(name=name, folder=FOLDER, outcome=outcome)
    return [click.unstyle(line) for line in screen(report)]


def test_the_first_line_tells_how_much_applied() -> None:
    """ "No violation" says little where little applied."""
    assert lines(summary())[0] == "50 of 50 invariants applied (100 %): no violation."
    assert (
        lines(summary(checked=0))[0] == "0 of 0 invariants applied (0 %): nothing could be judged."
    )


def test_a_run_among_several_is_named() -> None:
    """The reader sees which run a screen is about."""
    assert lines(summary(), name="run-2")[0].startswith("run-2: 50 of 50")


def test_the_first_group_is_told_in_full_and_the_others_in_a_line() -> None:
    """The most telling finding has the room."""
    told = lines(summary(groups=2))

    assert "1. title 0" in told
    assert "   Look at:   - the weather" in told
    assert "2. title 1 (step 0 (training), on rank 0, once)" in told


def violation(number: int, relation: str = "Toy", **changes: object) -> Violation:
    (made,) = summary(groups=1).violations
    changes = {"happened": f"happened {number}", **changes}
    return attrs.evolve(made, invariant_id=str(number), relation=relation, **changes)


def told_of(*violations: Violation, failed: tuple[Verdict, ...] = (), look_at: str = "") -> str:
    """Return what is told of one group."""
    (group,) = summary(groups=1).groups
    of = attrs.evolve(
        summary(groups=1), violations=violations, groups=(attrs.evolve(group, look_at=look_at),)
    )
    return "\n".join(lines(of, failed=failed))


def test_the_usual_causes_are_a_list() -> None:
    """The likeliest first, each in a line of its own."""
    assert "   Look at:   - one\n              - two" in told_of(violation(0), look_at="one; two")


def test_it_says_on_how_many_occasions_and_when_last() -> None:
    """Always is another fault than now and then."""
    last = Place(step=7, stage="training", rank=0)
    verdict = Verdict(
        invariant_id="0",
        relation="Toy",
        text_description="",
        verdict="failed",
        occasions=9,
        violations=2,
    )

    told = told_of(violation(0, occurrences=2, last=last), failed=(verdict,))

    assert "step 0 (training), on rank 0, on 2 of 9 occasions, last at step 7 (training)" in told


def test_the_source_lines_are_those_of_what_began_with_the_first() -> None:
    """What followed later may have happened anywhere."""
    place = Place(step=0, stage="training", rank=0)
    lead = violation(0, first=place)
    with_it = [
        violation(number, first=attrs.evolve(place, source=f"train.py:{number // 2}"))
        for number in (4, 5, 6)
    ]
    later = violation(2, first=attrs.evolve(place, step=1, source="other.py:4"))

    assert "Source:    train.py:2, train.py:3\n" in told_of(lead, later, *with_it)
    assert "Source:" not in told_of(lead, later)


def test_it_says_where_it_held_in_the_reference() -> None:
    """The line to compare with."""
    at = Place(step=1, stage="training", rank=0, source="good.py:5")
    told = told_of(violation(0, reference=Reference(run="r", at=at)))

    assert "   Reference: held first at step 1 (training), at good.py:5" in told


def test_what_was_broken_with_it_is_told_once_and_of_each_relation() -> None:
    """Ten parts that are frozen are not ten facts."""
    parts = [violation(number, "State") for number in range(1, 5)]
    effect = violation(9, "Effect", happened="nothing moved")
    again = violation(10, "Effect", happened="nothing moved")

    _, told = told_of(violation(0, "State"), *parts, effect, again).split("With it:")

    assert told.split("\n\n")[0].splitlines() == [
        "   - nothing moved",
        *(f"              - happened {number}" for number in (1, 2)),
        "              - and 2 more in violations_summary.json",
    ]


def test_where_nothing_was_broken_it_says_what_held() -> None:
    """Of which relations, and in how much of training."""
    passed = tuple(
        Verdict(
            invariant_id=str(number),
            relation="Toy",
            text_description="",
            verdict="passed",
            occasions=1,
            violations=0,
        )
        for number in range(3)
    )
    rank = RankProgress(rank=0, steps=30, recorded=12)
    told = lines(attrs.evolve(summary(), ranks=(rank,)), passed=passed)

    assert told[1] == "   held in 12 of 30 training steps recorded, on 1 rank: 3 Toy"


def test_what_was_not_judged_is_told_by_reason() -> None:
    """In a line where most applied; the most frequent reasons first."""
    one = attrs.evolve(summary(), not_triggered=3, unjudged={"never called": 3})
    several = attrs.evolve(
        summary(), not_triggered=4, unjudged={"never called": 1, "no occasion": 3}
    )

    assert lines(one)[1] == "   3 not judged: never called"
    assert lines(several)[1] == "   4 not judged: 3 no occasion, 1 never called"


def test_where_little_applied_it_says_so_first_and_what_to_do() -> None:
    """ "No violation" would mislead."""
    reasons = {"never called, or not recorded": 30, "of another kind": 3}
    few = attrs.evolve(summary(), passed=17, not_triggered=33, unjudged=reasons)

    told = lines(few)

    assert told[0] == "17 of 50 invariants applied (34 %): no violation, which says little."
    assert told[1].startswith("   30 not judged, never called, or not recorded: collect with")
    assert told[2] == "   3 not judged, of another kind: see not_triggered.log"


def test_many_groups_are_cut() -> None:
    """The screen is not flooded; it says how many more there are and where."""
    told = lines(summary(groups=30))

    assert sum(line.split(".")[0].isdigit() for line in told) == MAX_GROUPS
    assert f"   and {30 - MAX_GROUPS} more in results/violations_summary.json" in told


def test_long_lines_are_broken_and_indented_to_their_text():
    """What follows a label stands below the text after it, and styles take no room."""
    lines = ["   Look at:   " + "word " * 8, click.style("1. " + "title " * 6, bold=True), ""]

    first, title, empty = wrapped(lines, 30)

    assert first.splitlines()[1].startswith(" " * 14 + "word")
    assert click.unstyle(title).splitlines()[1].startswith("   title")
    assert max(map(len, click.unstyle(first).splitlines())) <= 30
    assert not empty


def test_what_is_suppressed_is_told_by_reason() -> None:
    """The most frequent reasons first; where there are many, how many invariants are left."""
    suppressions = tuple(
        Suppressed(pattern=f"p{number}", reason=f"r{number // 2}", invariant_ids=(f"{number}",))
        for number in range(2 * MAX_GROUPS + 1)
    )

    told = lines(attrs.evolve(summary(), suppressed=len(suppressions), suppressions=suppressions))

    assert told[1] == "   2 suppressed: r0"
    assert told[MAX_GROUPS] == f"   2 suppressed: r{MAX_GROUPS - 1}"
    assert told[MAX_GROUPS + 1] == (
        "   1 suppressed for other reasons, see violations_summary.json"
    )
    assert told[-1].startswith("Results are in ")
