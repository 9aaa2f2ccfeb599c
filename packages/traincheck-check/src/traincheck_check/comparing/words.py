"""Puts a comparison into lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from traincheck_check.comparing.verdict import moment
from traincheck_check.diagnosing.diagnosis import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_check.comparing.result import (
        Comparison,
        Divergence,
        RankComparison,
        Side,
        Spread,
    )

_COLOURS: Final = {"same": "green", "differ": "red", "not compared": "yellow"}
_INDENT: Final = "   "
_SPREADS: Final = 12  # lines of how it spread, of a rank
_RANKS: Final = 8  # that are told of
_NOTES: Final = 12
_HEADS: Final = ("steps", "parameters", "gradients", "buffers", "calls", "values")


def lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines: verdict, what parts first, what then, how it spread, what is left out."""
    colour = _COLOURS[comparison.verdict]
    if not comparison.is_complete and comparison.verdict == "same":
        colour = "yellow"
    yield click.style(f"{comparison.summary}.", fg=colour, bold=comparison.verdict == "differ")
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        yield f"{_INDENT}{letter}: {side_line(side)}"
    for divergence in comparison.divergences[:1]:
        yield ""
        yield from _in_full(divergence)
    if comparison.divergences[1:]:
        yield "Then:"
    for number, divergence in enumerate(comparison.divergences[1:], 2):
        yield f"{number}. {headline(divergence)}: {divergence.what}{_size(divergence)}"
    yield from _of_ranks(comparison)
    yield ""
    yield coverage_line(comparison)
    for note in comparison.notes[:_NOTES]:
        yield f"{_INDENT}note: {note}"


def side_line(side: Side) -> str:
    """Tell of one of the runs: where it lies, its steps, and what is missing of it."""
    steps = "no steps"
    if side.first_step is not None:
        steps = f"steps {side.first_step} to {side.last_step}"
    ranks = f", {len(side.ranks)} ranks" if len(side.ranks) > 1 else ""
    missing = f"; incomplete: {some_of(side.incomplete_because)}" if side.incomplete_because else ""
    return f"{side.path} ({steps}{ranks}){missing}"


def headline(divergence: Divergence) -> str:
    """Say what differs, and when."""
    return f"{divergence.kind.capitalize()}, {moment(divergence)}, rank {divergence.rank}"


def facts(divergence: Divergence) -> Iterator[tuple[str, str]]:
    """Yield the labels and texts of what is known of a divergence, beside its sentence."""
    in_a = _placed(divergence.in_a, divergence.source_a)
    in_b = _placed(divergence.in_b, divergence.source_b)
    if in_a or in_b:
        yield "In A", in_a or "nothing"
        yield "In B", in_b or "nothing"
    if divergence.size:
        yield "Size", divergence.size
    if divergence.within:
        yield "Within", " > ".join(divergence.within)
    if divergence.count > 1 or divergence.of > 1:
        share = f"{divergence.count} of {divergence.of}: " if divergence.of else ""
        yield "Names", f"{share}{some_of(divergence.names)}"
    if divergence.last_step >= 0 and divergence.kind != "steps":
        steps = f"{divergence.steps:,} step{'s' * (divergence.steps != 1)}"
        yield "Differs", f"in {steps}, the last is step {divergence.last_step}"
    if divergence.likely:
        yield "Hint", divergence.likely


def spread_rows(ranks: RankComparison) -> list[tuple[str, ...]]:
    """Return how it spread: steps, and how many of each differ there."""
    return [
        (
            _span(each),
            *(
                f"{number:,}" if number else "-"
                for number in (
                    *(each.parameters, each.gradients, each.buffers),
                    *(each.calls, each.values),
                )
            ),
        )
        for each in ranks.spread
        if each.parameters or each.gradients or each.buffers or each.calls or each.values
    ]


def coverage_line(comparison: Comparison) -> str:
    """Say how much was compared."""
    totals = [
        (sum(each.calls for each in comparison.ranks), "call"),
        (sum(each.values for each in comparison.ranks), "set of arguments or result"),
        (sum(each.variables for each in comparison.ranks), "variable"),
    ]
    told = ", ".join(_counted(number, noun) for number, noun in totals)
    ranks = _counted(len(comparison.ranks), "rank")
    return f"Compared: {_counted(comparison.steps, 'step')} on {ranks}: {told}"


def _counted(number: int, noun: str) -> str:
    plural = noun.replace("set of arguments or result", "sets of arguments or results")
    if plural == noun:
        plural = f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def _in_full(divergence: Divergence) -> Iterator[str]:
    yield click.style(f"1. {headline(divergence)}: {divergence.what}", bold=True)
    for label, text in facts(divergence):
        yield f"{_INDENT}{label + ':':<10}{text}"


def _size(divergence: Divergence) -> str:
    return f" ({divergence.size})" if divergence.size else ""


def _placed(value: str, source: str | None) -> str:
    return f"{value} ({source})" if source and value else value or source or ""


def _of_ranks(comparison: Comparison) -> Iterator[str]:
    """Yield what parts on each rank, and how it spread on the one that parts first."""
    if not comparison.divergences:
        return
    if len(comparison.ranks) > 1:
        yield ""
        for each in comparison.ranks[:_RANKS]:
            yield rank_line(each)
        if (more := len(comparison.ranks) - _RANKS) > 0:
            yield f"{_INDENT}and {more} more ranks"
    first = comparison.divergences[0].rank
    rows = next((spread_rows(each) for each in comparison.ranks if each.rank == first), [])
    if rows:
        yield ""
        yield f"How many differ, by step (rank {first}):"
        yield from _table(rows[:_SPREADS])
        if (more := len(rows) - _SPREADS) > 0:
            yield f"{_INDENT}and {more} more lines, see --format json"


def rank_line(rank: RankComparison) -> str:
    """Say where a rank parts."""
    if not rank.divergences:
        return f"{_INDENT}rank {rank.rank}: the same"
    first = rank.divergences[0]
    kinds = some_of([each.kind for each in rank.divergences[1:]])
    then = f"; then {kinds}" if kinds else ""
    return f"{_INDENT}rank {rank.rank}: parts {moment(first)} in {first.kind}{then}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in (_HEADS, *rows)) for at in range(len(_HEADS))]
    for row in (_HEADS, *rows):
        cells = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"{_INDENT}{'  '.join(cells)}"


def _span(spread: Spread) -> str:
    if spread.first_step < 0 and spread.last_step < 0:
        return "before 0"
    first = "before 0" if spread.first_step < 0 else f"{spread.first_step}"
    return first if spread.first_step == spread.last_step else f"{first} to {spread.last_step}"
