"""Aligns what two processes did in a window: which calls of the one are those of the other."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_check.comparing.script import END, LOOK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Indices of two tokens that correspond; None: the other has no such token.
Pair: TypeAlias = tuple[int | None, int | None]

_MOST = 250_000  # pairs of calls that are tried; aligning more in disorder takes too long


@attrs.define(eq=False)
class _Node:
    """A call with what it contains, or another token."""

    key: str
    begin: int
    end: int | None = None
    children: list[_Node] = attrs.field(factory=list)


def aligned(a: Sequence[str], b: Sequence[str]) -> Iterator[Pair]:
    """Yield pairs of tokens in the order in which they happened.

    Calls correspond by name and by order, among those that the same call made. So what is missing
    in one run, or is there in addition, puts nothing else out of step.
    """
    if a == b:
        yield from zip(range(len(a)), range(len(b)), strict=True)
        return
    stack = [_siblings(_tree(a), _tree(b))]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
        elif isinstance(step, tuple):
            yield step
        else:
            stack.append(step)


def last_common_call(pairs: Sequence[Pair], a: Sequence[str]) -> int:
    """Return the index of the last pair that belongs to a call; -1 if there is none."""
    common = (
        at
        for at, (i, j) in enumerate(pairs)
        if i is not None and j is not None and not a[i].startswith(LOOK)
    )
    return max(common, default=-1)


def unmatched(
    pairs: Sequence[Pair], a: Sequence[str], b: Sequence[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the functions of which A, and B, has calls without a counterpart."""
    only_a = (a[i] for i, j in pairs if i is not None and j is None)
    only_b = (b[j] for i, j in pairs if j is not None and i is None)
    return frozenset(filter(_is_begin, only_a)), frozenset(filter(_is_begin, only_b))


def _is_begin(token: str) -> bool:
    return token != END and not token.startswith(LOOK)


_Steps: TypeAlias = "Iterator[Pair | _Steps]"


def _siblings(a: Sequence[_Node], b: Sequence[_Node]) -> _Steps:
    x, y = [node.key for node in a], [node.key for node in b]
    start = _common(x, y)
    end = _common(x[start:][::-1], y[start:][::-1])
    stop_a, stop_b = len(a) - end, len(b) - end
    yield from map(_both, a[:start], b[:start])
    yield from _middle(a[start:stop_a], b[start:stop_b])
    yield from map(_both, a[stop_a:], b[stop_b:])


def _middle(a: Sequence[_Node], b: Sequence[_Node]) -> _Steps:
    """Align siblings that begin and end differently."""
    if len(a) * len(b) > _MOST or not a or not b:
        yield from map(_only_a, a)
        yield from map(_only_b, b)
        return
    x, y = [node.key for node in a], [node.key for node in b]
    for what, a0, a1, b0, b1 in SequenceMatcher(None, x, y, autojunk=False).get_opcodes():
        if what == "equal":
            yield from map(_both, a[a0:a1], b[b0:b1])
        else:
            yield from map(_only_a, a[a0:a1])
            yield from map(_only_b, b[b0:b1])


def _both(a: _Node, b: _Node) -> _Steps:
    yield a.begin, b.begin
    yield _siblings(a.children, b.children)
    if a.end is not None or b.end is not None:
        yield a.end, b.end


def _only_a(node: _Node) -> _Steps:
    last = _last(node)
    return ((index, None) for index in range(node.begin, last + 1))


def _only_b(node: _Node) -> _Steps:
    last = _last(node)
    return ((None, index) for index in range(node.begin, last + 1))


def _last(node: _Node) -> int:
    """Return the index of the last token in a node."""
    while node.end is None and node.children:
        node = node.children[-1]
    return node.begin if node.end is None else node.end


def _tree(tokens: Sequence[str]) -> list[_Node]:
    """Nest tokens by begin and end; an end without a begin stands for itself."""
    roots: list[_Node] = []
    open_: list[_Node] = []
    for index, token in enumerate(tokens):
        siblings = open_[-1].children if open_ else roots
        if token == END and open_:
            open_.pop().end = index
            continue
        node = _Node(token, index)
        siblings.append(node)
        if _is_begin(token):
            open_.append(node)
    return roots


def _common(x: Sequence[str], y: Sequence[str]) -> int:
    """Return how many items two sequences have in common at their begin."""
    for index, (one, other) in enumerate(zip(x, y, strict=False)):
        if one != other:
            return index
    return min(len(x), len(y))
