"""The calls that are open in a thread."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.api.spec import FunctionSpec

if TYPE_CHECKING:
    from collections.abc import Callable


@attrs.define(eq=False)
class OpenCall:
    """A call that has begun."""

    id: int
    spec: FunctionSpec
    owner: int  # id of the object whose method is called; 0 for a function
    src: int | None
    is_observed: bool
    forks: int  # how many had led to the process that recorded its begin

    def is_override_of(self, spec: FunctionSpec, owner: int) -> bool:
        """Whether `spec`, called now, is what this call overrides, on the same object.

        Then the two are one call to the user: the override calls it through `super()`.
        """
        return owner != 0 and self.owner == owner and spec.name in self.spec.bases


class ThreadState(threading.local):
    """What the recorder knows of the thread that asks: each thread sees its own."""

    def __init__(self, next_ordinal: Callable[[], int]) -> None:
        self.ordinal = next_ordinal()
        self.stack: list[OpenCall] = []
        self.is_busy = False  # the recorder is at work; what is called now is its own doing
        self.postponed: deque[Callable[[], None]] = deque()  # marks that came meanwhile

    @property
    def is_of_program(self) -> bool:
        """Whether the program made the thread; those of a backward on a device are torch's."""
        return not isinstance(threading.current_thread(), threading._DummyThread)  # noqa: SLF001
