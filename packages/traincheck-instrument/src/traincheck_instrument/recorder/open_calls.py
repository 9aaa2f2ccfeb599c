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
    src: int  # number of the line, or NOT_USER
    is_observed: bool
    forks: int  # how many had led to the process that recorded its begin
    tells_content: bool  # of the tensors that it is given, and returns

    def is_override_of(self, spec: FunctionSpec, owner: int) -> bool:
        """Whether `spec`, called now, is what this call overrides, on the same object.

        Then the two are one call to the user: the override calls it through `super()`, or the step
        that an optimizer holds calls that of its class.
        """
        if owner == 0 or self.owner != owner:
            return False
        return spec.name in self.spec.bases or (spec is self.spec and spec.is_optimizer_step)

    def close(self, stack: list[OpenCall]) -> None:
        """Take the call off a stack, and what was left open in it."""
        if stack and stack[-1] is self:
            stack.pop()
        elif self in stack:
            del stack[stack.index(self) :]


class ThreadState(threading.local):
    """What the recorder knows of the thread that asks: each thread sees its own."""

    def __init__(
        self,
        next_ordinal: Callable[[], int],
        on_met: Callable[[ThreadState], None] = lambda _: None,
    ) -> None:
        """Know nothing yet; `on_met` is told of each thread in it."""
        self.ordinal = next_ordinal()
        self.stack: list[OpenCall] = []
        self.is_busy = False  # the recorder is at work; what is called now is its own doing
        self.postponed: deque[Callable[[], None]] = deque()  # marks that came meanwhile
        on_met(self)

    @property
    def is_of_program(self) -> bool:
        """Whether the program made the thread; those of a backward on a device are torch's."""
        # To ask for the current thread would make one of a thread that is none of Python's.
        thread = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]  # noqa: SLF001  see above
        return thread is not None and type(thread) is not threading._DummyThread  # noqa: SLF001
