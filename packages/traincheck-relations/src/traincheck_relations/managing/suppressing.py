"""Adding and removing suppressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_relations.managing.ids import by_prefix
from traincheck_relations.suppression import is_glob, is_matched
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.suppressions import VERSION, Suppression

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_trace_schema.invariants import Invariant


def pattern_for(given: str, invariants: Sequence[Invariant], *, where: str) -> str:
    """Return the pattern that a person means: as it was typed, or the id that begins so.

    Raises:
        ConfigError: It matches no invariant, and not one id only begins so.
    """
    if any(is_matched(each, given) for each in invariants):
        return given
    ids = [each.id for each in invariants]
    if not given or is_glob(given) or not any(each.startswith(given) for each in ids):
        raise ConfigError(
            f"{where}: no invariant has the id {given!r}, an id that begins so, or is matched by it"
        )
    return by_prefix(given, ids, where=where)


def added(
    suppressions: Iterable[Suppression], patterns: Iterable[str], reason: str
) -> list[Suppression]:
    """Return suppressions with further ones, sorted by pattern; a pattern has its last reason."""
    found = {each.pattern: attrs.evolve(each, version=VERSION) for each in suppressions}
    found |= {each: Suppression(pattern=each, reason=reason) for each in patterns}
    return [found[pattern] for pattern in sorted(found)]


def removed(
    suppressions: Sequence[Suppression], given: Iterable[str], *, where: str
) -> tuple[list[Suppression], list[str]]:
    """Return the suppressions that are left, and the patterns of those that went.

    Args:
        suppressions: Those that there are.
        given: Patterns as they stand there, or the beginnings of them.
        where: What has them, for the message.

    Raises:
        ConfigError: No pattern is or begins so, or several begin so.
    """
    patterns = [each.pattern for each in suppressions]
    gone = list(dict.fromkeys(by_prefix(each, patterns, where=where) for each in given))
    return [each for each in suppressions if each.pattern not in gone], gone
