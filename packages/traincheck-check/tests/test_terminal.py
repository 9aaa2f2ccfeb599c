"""The first screen."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from traincheck_check.judging.outcome import Outcome
from traincheck_check.reporting.api import Report
from traincheck_check.reporting.screen import MAX_GROUPS, screen, wrapped
from traincheck_trace_schema.occasion import Place
from traincheck_trace_schema.results import (
    Summary,
    Suppressed,
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


def lines(told: Summary, name: str = "") -> list[str]:
    outcome = Outcome(summary=told, failed=(), passed=(), not_triggered=())
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
    assert "   Look at:   the weather" in told
    assert "2. title 1 (step 0 (training), rank 0, once)" in told


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
