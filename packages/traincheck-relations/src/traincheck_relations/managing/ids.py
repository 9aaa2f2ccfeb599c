"""Ids as people type and read them: their beginnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

_LEAST: Final = 8  # characters that are shown, so that a prefix lasts when invariants are added
_SHOWN: Final = 5


def by_prefix(given: str, ids: Collection[str], *, where: str) -> str:
    """Return the id that is given, or the one that begins so.

    Args:
        given: What a person typed.
        ids: The ids that there are.
        where: What has them, for the message.

    Raises:
        ConfigError: None begins so, or several do.
    """
    if given in ids:
        return given
    found = sorted(each for each in ids if given and each.startswith(given))
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigError(f"{where}: nothing here has the id {given!r}, or one that begins so")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise ConfigError(
        f"{where}: {len(found)} ids begin with {given!r}: {', '.join(found[:_SHOWN])}{more}; "
        "give more of it"
    )


def short_ids(ids: Collection[str]) -> dict[str, str]:
    """Return the beginning of each id, as long as it takes to tell them apart."""
    all_ = set(ids)
    length = _LEAST
    while len({each[:length] for each in all_}) < len(all_):
        length += 1
    return {each: each[:length] for each in all_}
