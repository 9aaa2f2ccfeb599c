"""Names and texts of a training program, made fit for a page: visible, and not too long."""

from __future__ import annotations

from markupsafe import Markup

MAX_TEXT = 600  # characters of a sentence
MAX_CELL = 160  # of a cell in a table


def visible(text: str) -> str:
    r"""Show what has no look of its own: control characters, marks of direction, half characters.

    >>> print(visible("safe\u202egnp.exe\x00"))
    safe\u202egnp.exe\x00
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def clipped(text: str, length: int = MAX_CELL) -> str:
    """Cut a text that is too long, and say how much is left out.

    >>> clipped("abcdefgh", 4)
    'abcd… (4 more characters)'
    """
    more = len(text) - length
    return text if more <= 0 else f"{text[:length]}… ({more:,} more characters)"


def finalized(value: object) -> object:
    """Return what a template puts into a page for the value of an expression."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(clipped(value, MAX_TEXT))
    return value
