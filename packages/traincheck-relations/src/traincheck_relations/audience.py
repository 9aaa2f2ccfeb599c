"""Who follows a run, and who wants which of its events.

Who wants an event is known from its kind and, for the records of calls, from the names of the
called function; an event that nobody wants costs one look-up. A relation that fails is dropped for
the rest of the run, and its fault is told; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from traincheck_relations.api import Monitor, Proposer
from traincheck_trace_schema.errors import TraincheckError

if TYPE_CHECKING:
    from traincheck_relations.api import Callee, Example, RawRecord

_NOTED = frozenset(("step", "function"))
_SCALARS = frozenset((str, int, float, bool, NoneType))

Watcher = TypeVar("Watcher", Proposer, Monitor)


@attrs.frozen
class Fault:
    """A relation that failed while it looked at a run, and was dropped from there on."""

    relation: str
    error: str


@attrs.define
class Seen:
    """What a run showed, whether or not a relation asked for it."""

    events: int = 0
    steps: int = 0  # training steps, from step 0 on
    functions: set[str] = attrs.field(factory=set)  # names of called functions, their bases too
    kinds: set[str] = attrs.field(factory=set)
    bases: dict[str, tuple[str, ...]] = attrs.field(factory=dict)  # what a function overrides
    _last_step: int = -1

    def note(self, kind: str, record: RawRecord) -> None:
        """Take the next record of a step or a function."""
        if kind == "step":
            # Each rank tells of each step, and no later record of an earlier one is awaited.
            if record["step"] > self._last_step:
                self._last_step = record["step"]
                self.steps += 1
        else:
            bases = record.get("bases")
            if isinstance(bases, Sequence):
                self.bases[str(record["name"])] = tuple(map(str, bases))


@attrs.define(eq=False)
class Follower(Generic[Watcher]):
    """One relation's proposer or monitor during a run."""

    name: str
    watcher: Watcher
    _fail: Callable[[str, Exception], None]
    _params: int = 0  # how many claims the watcher follows
    _always: frozenset[int] = frozenset()  # those that hold whatever the context
    _checked: object = None  # the last context; many claims share one

    def checked(self, example: Example) -> Example:
        """Return an example, if it is one that its users can handle."""
        if not 0 <= example.param < self._params:
            raise ValueError(f"an example of param {example.param}, of {self._params}")
        if not example.held:
            _ = example.at  # it is asked for, and may not be given
        if example.param in self._always:
            return example
        context = example.context
        if context is not self._checked:
            for name, value in context.items():
                if type(value) not in _SCALARS:
                    raise TypeError(f"the context says {name} is {value!r}, which is no scalar")
            self._checked = context
        return example

    def fail(self, error: Exception) -> None:
        """Drop the relation, unless the error is about the input."""
        if isinstance(error, TraincheckError):
            raise error
        self._fail(self.name, error)


class Audience(Generic[Watcher]):
    """Who follows a run, and who wants which of its events."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.seen = Seen()
        self._followers: dict[str, Follower[Watcher]] = {}
        self._routes: dict[tuple[str, Callee | None], tuple[Follower[Watcher], ...]] = {}

    def admit(
        self,
        name: str,
        make: Callable[[], Watcher],
        params: int = 0,
        always: frozenset[int] = frozenset(),
    ) -> None:
        """Let a relation follow so many claims, unless making its watcher fails.

        Nobody asks in which context those that are held `always` have an example.
        """
        try:
            watcher = make()
            watcher.interests.kinds | watcher.interests.functions  # it has to have them
        except TraincheckError:
            raise
        except Exception as error:  # noqa: BLE001  a plugin may fail in any way; it is told
            self._drop(name, error)
        else:
            self._followers[name] = Follower(name, watcher, self._drop, params, always)

    def followers(self) -> tuple[Follower[Watcher], ...]:
        """Return those who did not fail so far."""
        return tuple(self._followers.values())

    def wanted_by(
        self, kind: str, record: RawRecord, callee: Callee | None
    ) -> tuple[Follower[Watcher], ...]:
        """Take note of a record, of this kind and about this function; return who wants it."""
        self.seen.events += 1
        if kind in _NOTED:
            self.seen.note(kind, record)
        route = self._routes.get((kind, callee))
        return self._find_route(kind, callee) if route is None else route

    def _find_route(self, kind: str, callee: Callee | None) -> tuple[Follower[Watcher], ...]:
        names = None if callee is None else callee.names
        self.seen.kinds.add(kind)
        self.seen.functions.update(names or ())
        route = tuple(
            follower
            for follower in self._followers.values()
            for wants in (follower.watcher.interests,)
            if kind in wants.kinds
            and (names is None or not wants.functions or names & wants.functions)
        )
        self._routes[kind, callee] = route
        return route

    def _drop(self, name: str, error: Exception) -> None:
        self.faults.append(Fault(name, f"{type(error).__name__}: {error}"))
        self._followers.pop(name, None)
        self._routes.clear()
