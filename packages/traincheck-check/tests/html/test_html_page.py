"""The page: what it tells, and in which order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs
import pytest

from traincheck_check.diagnosing.coverage import advice
from traincheck_trace_schema.invariants import Invariant

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def text(of: Element | None) -> str:
    """Return the text of an element, with single spaces."""
    assert of is not None
    return " ".join("".join(of.itertext()).split())


def texts(tree: Element, path: str) -> list[str]:
    return [text(each) for each in tree.iterfind(path)]


def table(tree: Element, caption: str) -> list[list[str]]:
    """Return the rows of the table whose caption begins so."""
    found = [each for each in tree.iter("table") if text(each.find("caption")).startswith(caption)]
    assert len(found) == 1, caption
    return [[text(cell) for cell in row] for row in found[0].iterfind("tbody/tr")]


def facts(card: Element) -> dict[str, str]:
    """Return what a card says of a finding."""
    terms = card.find("dl")
    assert terms is not None
    cells = [text(each) for each in terms]
    return dict(zip(cells[::2], cells[1::2], strict=True))


def test_the_page_tells_everything_in_the_order_of_reading(begin, rich, parse) -> None:
    """The verdict first, then what is wrong, when, what was known, and how much was looked at."""
    tree = parse(begin().page(rich.report()))

    assert texts(tree, ".//h1") == ["TrainCheck report"]
    (verdict,) = texts(tree, ".//h2")
    assert verdict == (
        "35 of 41 invariants applied (85 %): 4 broken, 1 of them known, but the trace is "
        "incomplete."
    )
    assert texts(tree, ".//h3") == [
        *("What went wrong", "Timeline", "Known", "Coverage", "Sampling and overhead")
    ]
    totals = tree.find(".//dl[@class='totals']")
    assert texts(totals, "div") == [
        *("Broken4 1 known", "Passed31", "Not triggered6", "Checked41", "Suppressed2")
    ]
    assert texts(tree, ".//ul[@class='notices']/li") == [
        "Incomplete: trace_r3_p1003.json: rank 3 left no clean end",
        "Warning: ranks ended at different steps: rank 3 at step 210, the others at step 239",
    ]


def test_a_card_says_all_of_a_finding(begin, rich, parse) -> None:
    """What was expected, since when, how often, where, and what to look at."""
    tree = parse(begin().page(rich.report()))

    first = tree.find(".//article")
    assert text(first.find(".//h4")).startswith("torch.optim.Adam.step changed the data of none")
    assert facts(first) == {
        "Expected": "Each call of torch.optim.Optimizer.step changes the data of at least one "
        "torch.nn.Parameter that it holds",
        "Since": "step 12 (training); last at step 210 (training)",
        "How often": "on 1,888 of 3,776 occasions, on ranks 0, 1, 2, 3",
        "Variables": "model.head.weight, model.head.bias",
        "Call": "torch.optim.Adam.step",
        "Source": "examples/digits/train.py:77",
        "Held": "first in run a8972ae336b141028b303ac2c54f5bb8, step 0 (training), rank 0",
        "Look at": "whether the learning rate is zero",
    }
    assert table(first, "What was broken with finding 1") == [
        [
            "nothing was changed",
            *("step 3 (training)", "0", "1"),
        ]
    ]


def test_evidence_stands_beside_the_reference_with_marks(begin, rich, parse) -> None:
    """What is equal is told once; what differs, and what one of them lacks, has a sign."""
    tree = parse(begin().page(rich.report()))

    rows = table(tree, "Records of the trace that show it, beside run a8972ae336b14")
    assert rows[1] == ["names", "model.head.weight"]
    assert rows[3] == ["attributes.requires_grad", "false", "≠ true"]
    assert rows[4][2] == rows[8][1] == "≠ no such record"
    assert rows[9] == ["function", "", "torch.optim.Adam.step"]


def test_evidence_without_a_reference_has_no_marks(begin, rich, parse) -> None:
    """There is nothing that it could differ from."""
    second = list(parse(begin().page(rich.report())).iter("article"))[1]

    assert table(second, "Records of the trace")[-1] == ["attributes.requires_grad", "true"]
    assert not list(second.iter("mark"))


def test_what_a_title_does_not_say_is_told(begin, tell, parse) -> None:
    """A finding may have a title that is not what happened."""
    told = tell()
    told.broken("2 of 3 weights are equal")
    told.titles[0] = "Broken: weights differ"

    card = parse(begin().page(told.report())).find(".//article")

    assert facts(card)["Happened"] == "2 of 3 weights are equal"


def test_several_things_to_look_at_are_a_list(begin, tell, parse) -> None:
    """Each has a line of its own."""
    told = tell(look_at="the learning rate; the scaler")
    told.broken()

    tree = parse(begin().page(told.report()))

    assert texts(tree, ".//dd[@class='look']/ul/li") == ["the learning rate", "the scaler"]


def test_a_run_without_a_violation_has_no_findings(begin, tell, parse) -> None:
    """What is not there takes no room."""
    tree = parse(begin().page(tell(passed=9).report()))

    assert texts(tree, ".//h2") == ["9 of 9 invariants applied (100 %): no violation."]
    assert texts(tree, ".//h3") == ["Coverage", "Sampling and overhead"]
    assert tree.find(".//div[@class='verdict good']") is not None


@pytest.mark.parametrize(
    ("passed", "more", "min_coverage", "known"),
    [
        (0, {}, 0.0, False),
        (4, {"complete": False}, 0.0, False),
        (4, {}, 90.0, False),
        (4, {}, 0.0, True),
        (2, {}, 0.0, False),
    ],
)
def test_no_violation_that_says_little_looks_so(  # noqa: PLR0913, PLR0917  how it says little
    begin, tell, parse, passed, more, min_coverage, known
) -> None:
    """Nothing or too little applied, the trace is incomplete, or only what is known broke."""
    told = tell(passed=passed, more=more)
    for _ in range(3 if passed == 2 else 1):
        told.silent("a", "never called", "f was never called")
    if known:
        told.broken(known=True)

    tree = parse(begin(min_coverage=min_coverage).page(told.report()))

    assert tree.find(".//div[@class='verdict odd']") is not None
    assert ("at least 90 % have to apply" in texts(tree, ".//h2")[0]) == (min_coverage > 0)


def test_known_findings_are_folded_and_marked(begin, rich, parse) -> None:
    """They come after the timeline, closed, with the number that they have everywhere."""
    tree = parse(begin().page(rich.report()))

    (summary,) = [each for each in tree.iter("details") if text(each[0]).startswith("1 finding")]
    assert summary.get("open") is None
    assert texts(summary, ".//h4") == ["zero_grad is called after backward known"]
    assert texts(summary, ".//article/header/span") == ["3"]
    assert len(list(tree.iter("article"))) == 3


def test_a_known_violation_among_others_is_marked(begin, tell, parse) -> None:
    """Its group is new, if something in it is."""
    told = tell()
    told.broken()
    told.broken("an old one", group=0, known=True)

    tree = parse(begin().page(told.report()))

    assert table(tree, "What was broken with")[0][0] == "an old one known"
    assert "known" not in texts(tree, ".//h4")[0]


def test_coverage_tells_why_invariants_did_not_apply(begin, rich, parse) -> None:
    """By kind, with what to do; all of them can be unfolded; what is suppressed has its reason."""
    tree = parse(begin().page(rich.report()))

    assert table(tree, "Why invariants") == [
        ["4", "never called", advice("never called")],
        ["2", "precondition never met", advice("precondition never met")],
    ]
    silent = table(tree, "Invariants that were not triggered")
    assert len(silent) == 6
    assert silent[0] == [
        "Each call of torch.nn.Dropout.forward has training True, case 0",
        "torch.nn.Dropout.forward was never called in the steps that were recorded",
    ]
    assert table(tree, "Suppressed") == [
        ["2", "two loaders, in any order", "relation:EventOrderRelation"]
    ]


def test_sampling_and_overhead_are_told_by_rank(begin, rich, parse) -> None:
    """How far it came, how much was recorded, what that took, whether it ended."""
    rows = table(parse(begin().page(rich.report())), "How far each rank came")

    assert rows[0] == ["0", "240 (0 to 239)", "all", "3.1 %", "clean"]
    assert rows[3] == ["3", "211 (0 to 210)", "60 (28 %)", "not known", "not clean"]


def test_where_it_held_is_told_by_numbers_without_a_reference(begin, tell, parse) -> None:
    """Of inference's counts, those that hold and those that do not."""
    invariant = Invariant(
        id="id0",
        text_description="",
        relation="Toy",
        params=(),
        precondition={},
        num_positive_examples=3000,
        num_negative_examples=0,
        runs=("r1", "r2"),
    )
    told = tell()
    told.broken()
    told.broken("2")
    others = [
        invariant,
        attrs.evolve(invariant, id="id1", num_negative_examples=1, runs=("r1",)),
    ]

    tree = parse(begin(invariants=others).page(told.report()))

    held = [facts(card)["Held"] for card in tree.iter("article")]
    assert held == [
        "on all 3,000 occasions of 2 good runs",
        "on 3,000 of 3,001 occasions of 1 good run",
    ]


def test_where_an_invariant_held_may_not_be_known(begin, tell, parse) -> None:
    """Invariants of others need not tell."""
    told = tell()
    told.broken()

    tree = parse(begin().page(told.report()))

    assert facts(tree.find(".//article"))["Held"] == "not known: the invariant does not say"


def test_several_runs_stand_in_one_page(begin, rich, tell, parse) -> None:
    """A table of them, then a section for each, whose links lead into its own folder."""
    reporting = begin()
    page = reporting.page(rich.report("high lr"), tell(passed=3).report("low"))

    tree = parse(page)
    assert table(tree, "What was found") == [
        ["high lr", "41", "4 (1 known)", "31", "6", "incomplete"],
        ["low", "3", "0", "3", "0", "complete"],
    ]
    assert [each.split(":")[0] for each in texts(tree, ".//h2")] == ["2 runs", "high lr", "low"]
    links = [each.get("href") for each in tree.iter("a")]
    assert "./high%20lr/failed.log" in links
    assert "./low/passed.log" in links
    assert [each.name for each in reporting.path.parent.iterdir()] == ["report.html"]


def test_no_id_stands_twice_and_every_link_leads_somewhere(begin, rich, parse) -> None:
    """Links within the page lead to what is there."""
    tree = parse(begin().page(rich.report("a"), rich.report("b")))

    ids = [name for each in tree.iter() if (name := each.get("id"))]
    assert len(ids) == len(set(ids))
    used = [each.get("aria-labelledby") for each in tree.iter() if each.get("aria-labelledby")]
    anchors = [each.get("href")[1:] for each in tree.iter("a") if each.get("href")[0] == "#"]
    assert {*used, *anchors} <= set(ids)


def test_the_page_needs_neither_a_network_nor_a_script(begin, rich, parse) -> None:
    """And it forbids both."""
    page = begin().page(rich.report())

    tree = parse(page)
    policy = tree.find(".//meta[@http-equiv='Content-Security-Policy']")
    assert policy.get("content") == ("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "//" not in re.sub(r"<!--.*?-->", "", page)
    assert not list(tree.iter("script"))
    assert tree.find(".//link[@rel='icon']").get("href") == "data:,"  # else a browser asks for one
    targets = [each.get(name) for each in tree.iter() for name in ("src", "href", "action")]
    assert {each.partition("/")[0] for each in targets if each} <= {".", "data:,"} | {
        each for each in targets if each and each.startswith("#")
    }


def test_every_table_has_a_caption_and_headings(begin, rich, parse) -> None:
    """A screen reader says what the columns are."""
    tables = list(parse(begin().page(rich.report())).iter("table"))

    assert len(tables) == 8
    for each in tables:
        assert text(each.find("caption"))
        assert all(head.get("scope") for head in each.iter("th"))
        widths = {sum(int(cell.get("colspan", "1")) for cell in row) for row in each.iter("tr")}
        assert len(widths) == 1


def test_the_run_is_named(begin, tell, parse) -> None:
    """By its id; a run that has ended has the same page whenever it is checked."""
    told = tell(more={"run_ids": ("a8972ae336b14102",)})

    tree = parse(begin().page(told.report()))

    assert texts(tree, ".//header/p") == ["Run a8972ae336b14102"]
    assert not list(tree.iter("time"))


def test_a_live_page_tells_its_time(begin, tell, parse) -> None:
    """With its zone."""
    tree = parse(begin("live").page(tell(more={"run_ids": ("a8",)}).report()))

    assert texts(tree, ".//header/p") == ["Run a8, as of 2031-05-06 07:08:09 UTC"]
