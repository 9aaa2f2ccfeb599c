"""How a list of invariants stands on the screen, whatever its width, and in a pipe."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from traincheck_relations.commands.files import ENDLESS
from traincheck_trace_schema.commands.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_trace_schema.commands.table import Cell
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.suppressions import Suppression

_ROOM: Final = 40  # columns that a sentence needs, or it stands below what is told of it
_BETWEEN: Final = "  "
_CLAIM: Final = "claim"


def listing(
    shown: Sequence[Invariant],
    *,
    ids: Mapping[str, str],
    suppressed: Mapping[str, Suppression],
    width: int | None,
) -> Iterator[str]:
    """Yield the lines of a table of invariants.

    Args:
        shown: The invariants.
        ids: What to show of each id.
        suppressed: Of those that are suppressed, by their ids, why.
        width: Columns that a line may have; None: one line an invariant, whole.
    """
    heads, rows = _columns(shown, ids)
    sentences = [_CLAIM, *(_sentence(each, suppressed.get(each.id)) for each in shown)]
    front = list(table(heads, rows, width=width or ENDLESS))
    start = max(map(len, front)) + len(_BETWEEN)
    for line, sentence in zip(front, sentences, strict=True):
        if width is None:
            yield f"{line.ljust(start)}{sentence}"
        elif width - start >= _ROOM:
            yield from _wrapped(sentence, width, line.ljust(start), " " * start)
        else:
            yield line
            if sentence != _CLAIM:
                yield from _wrapped(sentence, width, _BETWEEN, _BETWEEN)


def _columns(
    shown: Sequence[Invariant], ids: Mapping[str, str]
) -> tuple[list[str], list[tuple[Cell, ...]]]:
    heads = ["id", "relation", "likelihood", "occasions"]
    rows: list[tuple[Cell, ...]] = [
        (
            ids[each.id],
            each.relation,
            "" if each.likelihood is None else f"{each.likelihood:.2f}",
            each.num_positive_examples,
        )
        for each in shown
    ]
    if all(each.likelihood is None for each in shown):
        del heads[2]
        rows = [(*row[:2], *row[3:]) for row in rows]
    return heads, rows


def _sentence(invariant: Invariant, suppression: Suppression | None) -> str:
    if suppression is None:
        return invariant.text_description
    return f"[suppressed: {suppression.reason}] {invariant.text_description}"


def _wrapped(sentence: str, width: int, first: str, then: str) -> list[str]:
    return textwrap.wrap(
        sentence,
        max(width, len(first) + 1),
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,  # names stay whole
        break_on_hyphens=False,
    ) or [first]
