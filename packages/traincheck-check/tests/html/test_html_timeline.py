"""The timelines: steps of the training, by group and rank."""

from __future__ import annotations

import attrs

from traincheck_check.reporting.html.findings import found_in
from traincheck_check.reporting.html.timeline import Chart, chart_of
from traincheck_trace_schema.results import RankProgress, Timeline


def rank(number: int, *, last: int = 99, recorded: int = 100) -> RankProgress:
    return RankProgress(rank=number, steps=100, recorded=recorded, first=0, last=last, ended=True)


def chart(told, *ranks: RankProgress, most: int = 20) -> Chart:
    found = chart_of(found_in(told.report().outcome), ranks, most)
    assert found is not None
    return found


def test_a_cell_stands_where_its_steps_do(tell) -> None:
    """In percent of all steps; neighbours that look alike are one cell."""
    told = tell()
    told.broken(counts={50: 1, 51: 1, 52: 1, 55: 1, 60: 3})

    (strip,) = chart(told, rank(0)).strips

    assert [attrs.astuple(each) for each in strip.cells] == [
        (50.0, 3.0, 1, "steps 50 to 52: 3"),
        (55.0, 1.0, 1, "step 55: 1"),
        (60.0, 1.0, 3, "step 60: 3"),
    ]
    assert strip.title == "Finding 1 on rank 0: 7 in steps 50 to 60"


def test_each_rank_of_a_group_has_a_strip(tell) -> None:
    """The violations of a group are added up."""
    told = tell()
    told.broken(ranks=(0, 2), counts={1: 1})
    told.broken(ranks=(2,), counts={1: 2, 5: 1}, group=0)
    told.broken(counts={7: 1})

    found = chart(told, rank(0), rank(2))

    assert [(each.group, each.rank, each.occasions) for each in found.strips] == [
        (1, 0, 1),
        (1, 2, 4),
        (2, 0, 1),
    ]


def test_a_rank_that_ended_early_has_a_short_line(tell) -> None:
    """And one that left steps out a line that says so."""
    told = tell()
    told.broken(ranks=(0, 1), counts={1: 1})

    whole, early = chart(told, rank(0), rank(1, last=49, recorded=10)).strips

    assert (whole.trained, whole.is_sampled) == ((0.0, 100.0), False)
    assert (early.trained, early.is_sampled) == ((0.0, 50.0), True)


def test_long_runs_have_wide_cells(tell) -> None:
    """Timelines of different widths share one axis, and no cell stands beyond its end."""
    told = tell()
    told.broken(counts={0: 1})
    wide = Timeline(rank=0, width=64, counts={"64": 2, "9984": 1})
    told.violations[0] = attrs.evolve(
        told.violations[0], timeline=(Timeline(rank=0, width=1, counts={"70": 1}), wide)
    )

    found = chart(told, attrs.evolve(rank(0), steps=10_000, last=9_999))
    (strip,) = found.strips

    assert found.ticks == (0, 4999, 9999)
    assert [each.title for each in strip.cells] == ["steps 0 to 127: 3", "steps 9984 to 9999: 1"]
    assert strip.cells[-1].left + strip.cells[-1].width == 100


def test_many_strips_are_cut(tell) -> None:
    """Each group has the room for some of its ranks; the page says how many are left out."""
    told = tell()
    told.broken(ranks=range(64))
    for _ in range(30):
        told.broken()

    found = chart(told, *map(rank, range(64)))

    assert [each.group for each in found.strips] == [1] * 8 + list(range(2, 14))
    assert found.more == 64 + 30 - 20


def test_without_progress_the_violations_give_the_axis(tell) -> None:
    """Traces of old versions tell no steps."""
    told = tell()
    told.broken(counts={30: 1, 40: 1})

    found = chart(told)

    assert found.ticks == (30, 35, 40)
    assert found.strips[0].trained is None


def test_nothing_is_drawn_where_nothing_is_known(tell) -> None:
    """Results of other checkers may lack timelines."""
    told = tell()
    told.broken()
    told.violations[0] = attrs.evolve(told.violations[0], timeline=())

    assert chart_of(found_in(told.report().outcome), (rank(0),), 20) is None


def test_the_page_draws_sampled_ranks_with_a_dashed_line(begin, rich, parse) -> None:
    """And says what that means; each strip has its words."""
    tree = parse(begin().page(rich.report()))

    drawing = tree.find(".//table[@class='chart']")
    lines = [each.get("class").split() for each in drawing.iter("line")]
    assert lines == [["trained"]] * 2 + [["trained", "sampled"]] * 2 + [["trained"]] * 2
    assert "dashed where not all of its steps were recorded" in "".join(drawing.itertext())
    assert all(each.get("aria-label") for each in drawing.iter("svg"))
    assert drawing.find(".//rect/title") is not None
