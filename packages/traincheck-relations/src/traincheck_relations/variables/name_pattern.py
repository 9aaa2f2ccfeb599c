"""Names of parts of a model, in short: `layers.*.norm` stands for the norm of each layer.

A pattern covers a name if it is the begin of it, component by component; `*` stands for a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def covers(pattern: str, name: str) -> bool:
    """Say whether a name is that of a part, or of something in it.

    >>> covers("model.layers.*.norm", "model.layers.3.norm.weight"), covers("fc", "fc2.weight")
    (True, False)
    """
    wanted, found = pattern.split("."), name.split(".")
    return len(wanted) <= len(found) and all(
        one == other or (one == "*" and other.isdigit())
        for one, other in zip(wanted, found, strict=False)
    )


def summarise(names: Collection[str], others: Collection[str]) -> list[str]:
    """Return the fewest patterns that cover all of the names and none of the others.

    >>> summarise(["m.0.a.w", "m.0.b.w", "m.1.a.w", "m.1.b.w"], ["m.0.c.w", "m.1.c.w"])
    ['m.*.a', 'm.*.b']
    >>> summarise(["m.0.a.w", "m.0.b.w"], ["m.1.a.w"])
    ['m.0']
    """
    taken = {prefix for name in others for prefix in (*_prefixes(name), *_prefixes(_starred(name)))}
    return sorted({_shortest(name, taken) for name in names})


def _shortest(name: str, taken: Collection[str]) -> str:
    """Return the shortest begin of a name that is none of another, with stars if possible."""
    for candidates in zip(_prefixes(_starred(name)), _prefixes(name), strict=True):
        for candidate in candidates:
            if candidate not in taken:
                return candidate
    return name


def _starred(name: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))
