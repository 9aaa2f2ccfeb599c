"""Objects of a program that are told by a name of ours, such as `optimizer0`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")


def _tell_nobody(key: int, name: str | None) -> None:
    del key, name


@attrs.define(eq=False)
class NamedObjects(Generic[T]):
    """Objects by name, in the order in which they were met; none is kept alive."""

    prefix: str
    on_named: Callable[[int, str | None], None] = _tell_nobody  # id, name; None when it is gone
    _known: dict[int, tuple[str, weakref.ref[T]]] = attrs.field(factory=dict)
    _count: int = 0

    def __iter__(self) -> Iterator[tuple[str, T]]:
        for name, reference in list(self._known.values()):
            if (one := reference()) is not None:
                yield name, one

    def add(self, one: T) -> bool:
        """Name an object, unless it has a name; return whether it had none."""
        key = id(one)
        if key in self._known:
            return False
        name = f"{self.prefix}{self._count}"
        self._count += 1

        def forget(_: object) -> None:
            self._known.pop(key, None)
            self.on_named(key, None)

        self._known[key] = (name, weakref.ref(one, forget))
        self.on_named(key, name)
        return True
