"""How what `show` tells stands on the screen: facts with their labels, sections with tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_trace_schema.commands.table import Cell, table, wrapped_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_INDENT: Final = "  "
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_THOUSAND: Final = 1000
_MINUTE: Final = 60


@attrs.frozen
class Screen:
    """Where lines are shown: how wide they may be, how many rows a table may have."""

    width: int
    limit: int | None = None
    unlimited_by: str = "--all"  # the option that shows the rest

    def facts(self, facts: Mapping[str, str]) -> Iterator[str]:
        """Yield a line or more a fact, with the labels below one another."""
        label_width = max(map(len, facts), default=0)
        for label, text in facts.items():
            first = f"{_INDENT}{label.ljust(label_width)}{_INDENT}"
            yield from _wrapped(text, self.width, first, " " * len(first))

    def section(
        self,
        title: str,
        heads: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        is_last_whole: bool = False,
    ) -> Iterator[str]:
        """Yield a title and a table; nothing if there are no rows.

        `is_last_whole`: the last column holds sentences, which are wrapped and never cut.
        """
        if not rows:
            return
        shown = rows[: self.limit]
        more = f" ({len(shown)} of {len(rows):,}; {self.unlimited_by} shows the rest)"
        yield ""
        yield title + (more if len(shown) < len(rows) else "")
        lay_out = wrapped_table if is_last_whole else table
        yield from lay_out(heads, shown, width=self.width, indent=_INDENT)

    def notes(self, label: str, texts: Iterable[str]) -> Iterator[str]:
        """Yield sentences, each after a label, and with the lines that follow indented."""
        told = list(texts)
        for text in told[: self.limit]:
            yield from _wrapped(text, self.width, f"{label}: ", _INDENT)
        if self.limit is not None and len(told) > self.limit:
            yield f"{label}: {len(told) - self.limit:,} more ({self.unlimited_by} shows them)"


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    """Break a text at spaces, so that paths and names stay whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def size(count: int) -> str:
    """Return a number of bytes with a unit that gives it few digits."""
    number = float(count)
    for unit in _UNITS:
        if number < _THOUSAND or unit == _UNITS[-1]:
            break
        number /= _THOUSAND
    return f"{count} B" if unit == _UNITS[0] else f"{number:.3g} {unit}"


def duration(seconds: float) -> str:
    """Return a stretch of time as a person would say it."""
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def counted(count: int, noun: str) -> str:
    """Return a number and its noun, in the plural where it must be."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
