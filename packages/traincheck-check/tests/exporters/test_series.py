"""The series of violations, and the figures of a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_check.reporting.exporters.metrics import metrics_of
from traincheck_check.reporting.exporters.series import MAX_POINTS, Series
from traincheck_trace_schema.occasion import Place
from traincheck_trace_schema.results import RankProgress, Summary, Timeline, Violation

if TYPE_CHECKING:
    from traincheck_check.reporting.api import Report

PLACE = Place(step=0, stage="training", rank=0)


def summary(
    *timelines: Timeline, last: int | None, running: bool = False, first: int = 0
) -> Summary:
    violations = tuple(
        Violation(
            invariant_id=str(number),
            relation="Toy",
            text_description="claim",
            first=PLACE,
            last=PLACE,
            occurrences=sum(each.counts.values()),
            ranks=(0,),
            group=0,
            timeline=(each,),
        )
        for number, each in enumerate(timelines)
    )
    rank = RankProgress(
        rank=0, steps=1, recorded=1, first=None if last is None else first, last=last
    )
    return Summary(
        checked=len(violations),
        failed=len(violations),
        passed=0,
        not_triggered=0,
        complete=True,
        running=running,
        violations=violations,
        ranks=(rank,),
    )


def line(counts: dict[int, int], width: int = 1) -> Timeline:
    return Timeline(rank=0, width=width, counts={str(key): n for key, n in counts.items()})


def told(series: Series, of: Summary) -> list[tuple[int, int, int]]:
    advance = series.advance(of)
    return [(each.step, each.violations, each.so_far) for each in advance.points] if advance else []


def test_a_finished_run_is_told_step_by_step() -> None:
    """Steps without a violation count too: a chart of the others alone would lie."""
    of = summary(line({3: 2}), line({3: 1, 5: 1}), last=6, first=2)

    assert told(Series(), of) == [(2, 0, 0), (3, 3, 3), (4, 0, 3), (5, 1, 4), (6, 0, 4)]


def test_a_step_that_goes_on_is_not_told_yet() -> None:
    """More may be found out about it; and nothing is told twice."""
    series = Series()

    first = told(series, summary(line({1: 1, 2: 1}), last=2, running=True))
    again = told(series, summary(line({1: 1, 2: 2}), last=2, running=True))
    end = told(series, summary(line({1: 1, 2: 2}), last=2))

    assert (first, again, end) == ([(0, 0, 0), (1, 1, 1)], [], [(2, 2, 3)])


def test_what_is_found_late_counts_in_the_next_stretch() -> None:
    """Nothing that was told is taken back, and the sum is right."""
    series = Series()
    told(series, summary(last=3, running=True))

    assert told(series, summary(line({0: 5}), last=3)) == [(3, 5, 5)]


def test_long_runs_are_told_in_stretches() -> None:
    """A service is not flooded; a stretch is never finer than what is known."""
    counts = dict.fromkeys(range(0, 100_000, 7), 1)

    many = told(Series(), summary(line(counts), last=99_999))
    coarse = told(Series(), summary(line({0: 9, 8: 1}, width=8), last=15))

    assert len(many) <= MAX_POINTS
    assert many[-1][2] == len(counts)
    assert coarse == [(0, 9, 9), (8, 1, 10)]


def test_a_run_without_steps_has_one_point() -> None:
    """Its violations count as of step 0."""
    assert told(Series(), summary(line({0: 2}), last=None)) == [(0, 2, 2)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 3)), max_size=30))
def test_whatever_comes_when_steps_rise_and_violations_add_up(
    updates: list[tuple[int, int, int]],
) -> None:
    """An update: how many steps further, how far back something was broken, how often."""
    series, last, counts = Series(), 0, dict[int, int]()
    points = []
    for further, back, often in updates:
        last += further
        step = max(0, last - back)
        counts[step] = counts.get(step, 0) + often
        points += told(series, summary(line(counts), last=last, running=True))
    points += told(series, summary(line(counts), last=last))

    steps = [step for step, _, _ in points]
    assert steps == sorted(set(steps))
    assert sum(new for _, new, _ in points) == points[-1][2] == sum(counts.values())
    assert all(new >= 0 for _, new, _ in points)


def test_the_figures_of_a_summary(live_reports: list[Report]) -> None:
    """Names of TrainCheck 0.x where there are such, and what applied."""
    of = live_reports[-1].outcome.summary

    figures = metrics_of(attrs.evolve(of, suppressed=2))

    assert figures["invariants/total"] == 6
    assert figures["checks/total"] == 4
    assert figures["checks/failed"] == figures["checks/new"] == 1
    assert figures["checks/pass_rate_pct"] == 100 * 2 / 3
    assert figures["coverage/applied_pct"] == 75
    assert figures["coverage/not_triggered/never_called_or_not_recorded"] == 1
    assert figures["violations/total"] == 5
    assert (figures["violations/first_step"], figures["violations/last_step"]) == (3, 7)
    assert figures["trace/steps"] == 8


def test_figures_that_can_not_be_known_are_left_out() -> None:
    """A share of nothing, and where the first of no violations was."""
    of = Summary(checked=0, failed=0, passed=0, not_triggered=0, complete=False, violations=())

    figures = metrics_of(of)

    assert "checks/pass_rate_pct" not in figures
    assert "coverage/applied_pct" not in figures
    assert "violations/first_step" not in figures
    assert figures["trace/is_complete"] == 0
