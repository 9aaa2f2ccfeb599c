"""Turns: the outermost calls of a function in a thread.

A call inside one of its own is none, nor is one that an object makes while it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_relations.api import Call, Event

_CONSTRUCTOR = ".__init__"
CALL_KINDS = frozenset(("call_begin", "call_end", "call_error"))

Lane: TypeAlias = "tuple[int, int]"  # process, thread: only what happens in one has an order


def lane_of(event: Event) -> Lane:
    """Return the thread in which an event happened."""
    return event.process, event.record.get("thread", 0)


def is_in_constructor(call: Call) -> bool:
    """Whether a call is made while an object is made, as a scheduler's first step is."""
    return any(one.function.endswith(_CONSTRUCTOR) for one in call.around())


class Turns:
    """Tells of which functions a call is a turn; feed it the call events of all processes."""

    def __init__(self, functions_of: Callable[[Call], tuple[str, ...]]) -> None:
        self._functions_of = functions_of
        self._known: dict[frozenset[str], tuple[str, ...]] = {}
        self._open: dict[tuple[Lane, str], Call] = {}

    def take(self, event: Event) -> tuple[str, ...]:
        """Take the next call event; return the functions of which a turn begins or ends."""
        call = event.call
        if call is None:
            return ()
        functions = self._known.get(call.names)
        if functions is None:
            functions = self._known[call.names] = self._functions_of(call)
        if not functions or is_in_constructor(call):
            return ()
        lane = lane_of(event)
        if event.kind == "call_begin":
            return tuple(each for each in functions if self._begins(lane, each, call))
        ended = tuple(each for each in functions if self._open.get((lane, each)) is call)
        for each in ended:
            del self._open[lane, each]
        return ended

    def forget(self, process: int) -> None:
        """Forget the calls of a process that are open."""
        for key in [key for key in self._open if key[0][0] == process]:
            del self._open[key]

    def _begins(self, lane: Lane, function: str, call: Call) -> bool:
        """Whether a turn begins; one whose end was not recorded is over."""
        around = self._open.get((lane, function))
        if around is not None and call.is_within(around):
            return False
        self._open[lane, function] = call
        return True
