"""Tables of text that fit the width of a terminal."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Cell: TypeAlias = "str | int | None"

MAX_WIDTH: Final = 110  # longer lines are hard to read
_DEFAULT_WIDTH: Final = 80
_LEAST: Final = 12  # columns that a long text keeps
_BETWEEN: Final = "  "
_DOTS: Final = "..."


def terminal_width() -> int:
    """Return how wide a line may be: as the terminal is, 80 where there is none."""
    return min(shutil.get_terminal_size((_DEFAULT_WIDTH, 0)).columns, MAX_WIDTH)


def table(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, width: int, indent: str = ""
) -> Iterator[str]:
    """Yield the lines of a table: numbers to the right, long texts cut in their middle.

    Args:
        heads: What stands above the columns.
        rows: The cells; None is an empty one.
        width: Columns that a line may have.
        indent: Stands before each line.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    is_number = [all(isinstance(row[at], int | None) for row in rows) for at in range(len(heads))]
    widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
    _narrow(widths, width - len(indent))
    for row in [list(heads), *texts]:
        cells = (
            shortened(cell, room).rjust(room) if right else shortened(cell, room).ljust(room)
            for cell, room, right in zip(row, widths, is_number, strict=True)
        )
        yield (indent + _BETWEEN.join(cells)).rstrip()


def wrapped_table(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, width: int, indent: str = ""
) -> Iterator[str]:
    """Yield the lines of a table whose last column is wrapped below itself, and never cut.

    The arguments are those of `table`.
    """
    room = max(width // 2 - len(indent), _LEAST)  # of the other columns
    texts = [_text(row[-1]) for row in rows]
    front = table(heads[:-1], [row[:-1] for row in rows], width=room, indent=indent)
    lines = list(front)
    start = max(map(len, lines), default=0) + len(_BETWEEN)
    for line, text in zip(lines, [heads[-1], *texts], strict=True):
        yield from textwrap.wrap(
            text,
            max(width, start + _LEAST),
            initial_indent=line.ljust(start),
            subsequent_indent=" " * start,
            break_long_words=False,  # names stay whole
            break_on_hyphens=False,
        ) or [line]


def shortened(text: str, width: int) -> str:
    """Return a text cut in its middle, since names differ at their ends."""
    if len(text) <= width:
        return text
    kept = max(width - len(_DOTS), 0)
    end = (kept + 1) // 2
    return f"{text[: kept - end]}{_DOTS[:width]}{text[len(text) - end :] if end else ''}"


def _narrow(widths: list[int], room: int) -> None:
    """Take from the widest columns what is too much."""
    room -= len(_BETWEEN) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else f"{cell:,}"
