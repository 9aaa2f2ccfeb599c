"""Tables and facts on the screen of `traincheck-schema show`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_trace_schema.commands.screen import Screen, duration, size
from traincheck_trace_schema.commands.table import shortened, table

ROWS = st.lists(st.tuples(st.text("ab.", max_size=150), st.integers(0), st.text("x", max_size=90)))


def test_numbers_stand_to_the_right() -> None:
    """And have their thousands apart; texts stand to the left."""
    lines = list(table(["calls", "function"], [(12345, "f"), (None, "gg")], width=80, indent="  "))

    assert lines == ["   calls  function", "  12,345  f", "          gg"]


def test_long_names_are_cut_in_their_middle() -> None:
    """Names of functions differ at their ends."""
    (_, line) = table(["n", "function"], [(1, "torch." + "x" * 80 + ".step")], width=30)

    assert len(line) == 30
    assert line.startswith("1  torch.")
    assert line.endswith("x.step")


@given(rows=ROWS, width=st.integers(50, 120))
def test_lines_fit(rows: list[tuple[str, int, str]], width: int) -> None:
    """No line is wider than it may be, whatever stands in the table."""
    short = [(name, number % 10**9, text) for name, number, text in rows]

    assert all(len(line) <= width for line in table(["a", "b", "c"], short, width=width))


@given(text=st.text(max_size=40), width=st.integers(0, 50))
def test_what_is_cut_has_the_width(text: str, width: int) -> None:
    """A text that fits stays; another takes all the room that there is."""
    cut = shortened(text, width)

    assert cut == text if len(text) <= width else len(cut) == width


def test_a_table_may_have_so_many_rows() -> None:
    """The title says how many there are, and how to see them."""
    title = list(Screen(80, 2).section("Things", ["n"], [(n,) for n in range(5)]))[1]

    assert title == "Things (2 of 5; --all shows the rest)"
    assert not list(Screen(80).section("Things", ["n"], []))


def test_facts_are_wrapped_below_one_another() -> None:
    """What follows begins where the fact began."""
    lines = list(Screen(30).facts({"a": "one two three four five six", "long": "x"}))

    assert lines == ["  a     one two three four", "        five six", "  long  x"]


@pytest.mark.parametrize(
    ("count", "told"), [(7, "7 B"), (1500, "1.5 kB"), (64_800_000, "64.8 MB"), (2e12, "2 TB")]
)
def test_sizes_have_few_digits(count: int, told: str) -> None:
    """And a unit."""
    assert size(count) == told


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.0123, "0.0123 s"), (90, "1 min 30 s"), (7_260, "2 h 1 min")]
)
def test_durations_are_told_as_people_do(seconds: float, told: str) -> None:
    """In two units at most."""
    assert duration(seconds) == told
