"""Which violations are alike enough to have one cause: found by what they share, not in pairs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import attrs

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from traincheck_check.diagnosing.pattern import Pattern
    from traincheck_trace_schema.occasion import Place

NEAR_STEPS = 1  # a cause shows in the same step, or in the next at the same call

_Dated: TypeAlias = "tuple[int, int]"  # the step in which a violation began, and its number
_step = itemgetter(0)


@attrs.define(eq=False)
class _Shared:
    """Violations that share something: with those of `full` all the others go, `half` with them."""

    full: list[_Dated] = attrs.field(factory=list)
    half: list[_Dated] = attrs.field(factory=list)


class Likeness:
    """Violations, brought together where they are alike and begin at about the same time."""

    def __init__(self) -> None:
        self._shared: defaultdict[Hashable, _Shared] = defaultdict(_Shared)
        self._calls: list[tuple[_Dated, frozenset[str]]] = []  # claims about calls alone
        self._parents: list[int] = []  # of each number: one that it goes with, or itself

    def add(self, number: int, first: Place, variables: Collection[str], pattern: Pattern) -> None:
        """Take the next violation; numbers count from 0.

        Args:
            number: Its number.
            first: Where it happened first.
            variables: On which.
            pattern: The kind of its claim.
        """
        self._parents.append(number)
        one = first.step, number
        if pattern.kind is not None:  # the same went wrong with something else
            self._shared["kind", pattern.kind].full.append(one)
        if pattern.is_of_mode:
            self._shared["mode"].full.append(one)
        for name in variables:
            self._shared["variable", name].full.append(one)
        for name in _wholes(variables):
            self._shared["variable", name].half.append(one)
        if pattern.concerns_all:
            self._shared["all"].full.append(one)
        elif variables:
            self._shared["all"].half.append(one)
        if first.function is not None:
            of_function = self._shared["function", first.function]
            (of_function.half if variables else of_function.full).append(one)
        if pattern.is_of_calls and not variables:
            self._calls.append((one, pattern.functions))

    def groups(self) -> list[list[int]]:
        """Return the numbers that go together, in their order; each group by its first."""
        for shared in self._shared.values():
            self._join_shared(shared)
        self._join_calls()
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(len(self._parents)):
            groups[self._root(number)].append(number)
        return list(groups.values())

    def _join_shared(self, shared: _Shared) -> None:
        full = sorted(shared.full)
        for one, other in pairwise(full):
            self._join_if_near(one, other)
        for one in shared.half if full else ():
            start = bisect_left(full, one[0] - NEAR_STEPS, key=_step)
            end = bisect_right(full, one[0] + NEAR_STEPS, key=_step)
            # Those in one step go together already.
            for other in {each[0]: each for each in full[start:end]}.values():
                self._join_if_near(one, other)

    def _join_calls(self) -> None:
        """Join claims about calls of which one names no function that the other does not."""
        by_function: defaultdict[str, list[tuple[_Dated, frozenset[str]]]] = defaultdict(list)
        for each in self._calls:
            for name in each[1]:
                by_function[name].append(each)
        for one, functions in self._calls:
            rarest = min(map(by_function.__getitem__, functions), key=len, default=())
            for other, others in rarest:
                if functions <= others:
                    self._join_if_near(one, other)

    def _join_if_near(self, one: _Dated, other: _Dated) -> None:
        if abs(one[0] - other[0]) <= NEAR_STEPS:
            first, second = sorted((self._root(one[1]), self._root(other[1])))
            self._parents[second] = first

    def _root(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number


def _wholes(names: Iterable[str]) -> set[str]:
    """Return what variables are parts of.

    >>> sorted(_wholes(["model.a.weight"]))
    ['model', 'model.a']
    """
    paths = [name.split(".") for name in names]
    return {".".join(path[:length]) for path in paths for length in range(1, len(path))}
