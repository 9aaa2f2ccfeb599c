"""Suppressing invariants: which of them a suppression speaks about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.invariants import function_of
from traincheck_trace_schema.suppression_file import read_suppressions, suppression_path
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from traincheck_trace_schema.invariants import Invariant


def functions_of(invariant: Invariant) -> tuple[str, ...]:
    """Return the functions that the params of an invariant name, each once."""
    return tuple(dict.fromkeys(filter(None, map(function_of, invariant.params))))


def is_matched(invariant: Invariant, pattern: str) -> bool:
    """Whether a pattern matches an invariant: its id, relation, a function or its sentence."""
    return any(fnmatchcase(text, pattern) for text in _texts(invariant))


def is_glob(pattern: str) -> bool:
    """Whether a pattern is more than the text that it says."""
    return not {*"*?["}.isdisjoint(pattern)


def suppressions_beside(paths: Iterable[Path]) -> list[Suppression]:
    """Read the suppressions that stand beside invariant files; where none stand, there are none.

    Raises:
        ConfigError: A file of them cannot be read.
    """
    files = dict.fromkeys(map(suppression_path, paths))
    return [each for path in files if path.exists() for each in read_suppressions(path)]


@attrs.frozen
class Suppressions:
    """Finds the suppressions of an invariant, of many in the time of few."""

    all: Sequence[Suppression]
    _literal: Mapping[str, Sequence[int]]  # a baseline may have thousands of ids: one look-up
    _globs: Sequence[int]

    @classmethod
    def of(cls, suppressions: Sequence[Suppression]) -> Suppressions:
        """Prepare suppressions for being asked."""
        literal: dict[str, list[int]] = {}
        globs = []
        for at, each in enumerate(suppressions):
            if is_glob(each.pattern):
                globs.append(at)
            else:
                literal.setdefault(each.pattern, []).append(at)
        return cls(tuple(suppressions), literal, globs)

    def matching(self, invariant: Invariant) -> list[int]:
        """Return which suppressions match an invariant, by their places in `all`."""
        return sorted({*self._matching(invariant)})

    def find(self, invariant: Invariant) -> Suppression | None:
        """Return the suppression of an invariant, the first that matches; None if it has none."""
        found = self.matching(invariant)
        return self.all[found[0]] if found else None

    def by_id(self, invariants: Iterable[Invariant]) -> dict[str, Suppression]:
        """Return the suppressions of those invariants that have one, by their ids."""
        found = ((each.id, self.find(each)) for each in invariants)
        return {id_: suppression for id_, suppression in found if suppression is not None}

    def _matching(self, invariant: Invariant) -> Iterator[int]:
        for text in _texts(invariant):
            yield from self._literal.get(text, ())
        yield from (at for at in self._globs if is_matched(invariant, self.all[at].pattern))


def _texts(invariant: Invariant) -> tuple[str, ...]:
    return (
        invariant.id,
        invariant.relation,
        *functions_of(invariant),
        invariant.text_description,
    )
