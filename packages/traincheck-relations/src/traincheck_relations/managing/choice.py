"""Choosing invariants: by relation, function, id, words, likelihood, examples."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.suppression import functions_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from traincheck_trace_schema.invariants import Invariant


@attrs.frozen(kw_only=True)
class Choice:
    """What is asked of invariants: all of it, and of several values of one kind any of them.

    `relations` and `functions` are patterns with the wildcards of a shell, `ids` are whole ids.
    What an invariant does not tell is not enough for any minimum.
    """

    relations: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    min_likelihood: float | None = None
    min_positive: int | None = None
    is_inverted: bool = False

    @property
    def asks(self) -> bool:
        """Whether anything is asked for."""
        return self != Choice(is_inverted=self.is_inverted)

    def of(self, invariants: Iterable[Invariant]) -> list[Invariant]:
        """Return those that are chosen, in their order."""
        return [each for each in invariants if self._is_met(each) != self.is_inverted]

    def _is_met(self, invariant: Invariant) -> bool:
        return (
            _is_any([invariant.relation], self.relations)
            and _is_any(functions_of(invariant), self.functions)
            and (not self.ids or invariant.id in self.ids)
            and (self.words is None or bool(self.words.search(invariant.text_description)))
            and _is_enough(invariant.likelihood, self.min_likelihood)
            and _is_enough(invariant.num_positive_examples, self.min_positive)
        )


def _is_any(names: Collection[str], patterns: Collection[str]) -> bool:
    return not patterns or any(
        fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns
    )


def _is_enough(told: float | None, least: float | None) -> bool:
    return least is None or (told is not None and told >= least)
