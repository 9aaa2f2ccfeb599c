"""The context managers that are entered and not yet left, in each thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import attrs

from traincheck_instrument.encode.scalars import Json


@attrs.define(eq=False)
class OpenContexts:
    """What is open in one thread, in the order of entering; of one name the innermost holds."""

    active: Mapping[str, Json] = attrs.field(factory=dict)  # replaced, never changed
    _open: list[OpenContext] = attrs.field(factory=list)

    def enter(self, context: OpenContext) -> None:
        """Take note that a context is entered."""
        self._open.append(context)
        self._refresh()

    def leave(self, context: OpenContext) -> None:
        """Take note that a context is left, whichever it is."""
        if context in self._open:
            self._open.remove(context)
            self._refresh()

    def _refresh(self) -> None:
        innermost = {context.name: context.told for context in self._open}
        self.active = {name: value for told in innermost.values() for name, value in told.items()}


@attrs.define(eq=False)
class OpenContext:
    """A context that a thread has entered, or is about to."""

    name: str
    told: Mapping[str, Json]  # itself and its arguments, by name
    _thread: OpenContexts

    def enter(self) -> None:
        """Take note that it is entered."""
        self._thread.enter(self)

    def leave(self) -> None:
        """Take note that it is left; another thread may do that."""
        self._thread.leave(self)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.contexts = OpenContexts()


class Entered:
    """The contexts that were entered, in whatever thread."""

    def __init__(self) -> None:
        self.is_used = False  # read at each call, which is cheaper than asking for the thread's
        self._thread = _Thread()

    def active(self) -> Mapping[str, Json]:
        """Return what is open in this thread."""
        return self._thread.contexts.active

    def prepare(self, name: str, arguments: Mapping[str, Json]) -> OpenContext:
        """Make the context that this thread is about to enter."""
        self.is_used = True
        told = {name: True, **{f"{name}.{key}": value for key, value in arguments.items()}}
        return OpenContext(name, told, self._thread.contexts)
