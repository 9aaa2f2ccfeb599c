"""The size of the page: bounded, whatever was found."""

from __future__ import annotations

import re

import pytest

from traincheck_check.reporting.html.limits import MAX_BYTES
from traincheck_trace_schema.occasion import Reference


def many(told, number: int, name: str, *, group: int | None = None):
    """Break so many invariants, with all the evidence that is kept."""
    for at in range(number):
        evidence = tuple(told.record(at + each, requires_grad=name) for each in range(6))
        told.broken(
            f"{name} changed nothing, case {at}",
            expected=f"{name} changes something, case {at}",
            group=None if at == 0 else group,
            first=told.place(at, function=name, source=f"{name}.py:{at}"),
            ranks=range(4),
            counts={step: 1 + step % 3 for step in range(at, at + 60)},
            variables=[f"{name}.{each}" for each in range(20)],
            evidence=evidence,
            reference=Reference(run="r", at=told.place(0), evidence=evidence[::2]),
        )
    for at in range(number):
        told.silent(f"{name} is quiet, case {at}", "never called", f"{name} was never called")
    return told


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.11.attention.weight",
        "model.layers.11.attention.weight" * 50,
        "'\"<>&" * 1000,
        "\U000e0041" * 1000,
        "\U0001f525" * 1000,
    ],
    ids=["plain", "long", "escaped", "invisible", "wide"],
)
def test_a_thousand_violations_stay_below_a_megabyte(begin, tell, name: str) -> None:
    """Of each its own group, with names as long and as costly as they come."""
    page = begin().page(many(tell(), 1000, name).report())

    assert len(page.encode()) <= MAX_BYTES


def test_the_first_are_told_in_full_the_others_in_a_line(begin, tell, parse) -> None:
    """And what is left out is counted: nothing gets lost without a word."""
    tree = parse(begin().page(many(tell(), 1000, "f").report()))

    cards = list(tree.iter("article"))
    (table,) = [each for each in tree.iter("table") if each[0].text == "Further findings, in short"]
    lines = table.findall("tbody/tr")
    left_out = re.findall(r"and ([\d,]+) more in", "".join(tree.itertext()))
    assert len(cards) == 24
    assert [each[0].text for each in (lines[0], lines[-1])] == ["25", str(24 + len(lines))]
    assert 24 + len(lines) + int(left_out[0]) == 1000


def test_the_timeline_leads_also_to_what_is_told_in_a_line(begin, tell, parse) -> None:
    """It has more groups than there are cards."""
    told = tell()
    for number in range(40):
        told.broken(str(number))

    tree = parse(begin().page(told.report()))

    ids = {name for each in tree.iter() if (name := each.get("id"))}
    links = {each.get("href")[1:] for each in tree.iterfind(".//table[@class='chart']//a")}
    assert len(links) == 40
    assert links <= ids


def test_a_group_with_many_members_tells_the_first(begin, tell, parse) -> None:
    """One card, not a thousand."""
    tree = parse(begin().page(many(tell(), 1000, "f", group=0).report()))

    (card,) = tree.iter("article")
    assert "Broken with it: 999 more" in "".join(card.itertext())
    assert "and 987 more in failed.log" in "".join(card.itertext())


def test_many_runs_share_the_page(begin, tell, parse) -> None:
    """Each is told in full at least in its first finding."""
    reports = [many(tell(), 30, "f").report(f"run{number}") for number in range(30)]

    page = begin().page(*reports)

    assert len(page.encode()) <= MAX_BYTES
    tree = parse(page)
    sections = tree.findall(".//section[@class='run']")
    assert len(sections) == 30
    assert all(each.find(".//article") is not None for each in sections)
    assert len(tree.findall(".//td[@class='strip']")) == 30
