"""The one engine of inference and checking: feeds a run's events to those who asked for them.

Who wants an event is known from its kind and, for the records of calls, from the names of the
called function; an event that nobody wants costs one look-up. A relation that fails is dropped for
the rest of the run, and its fault is told; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import attrs

from traincheck_relations.api import Event, Example, Gap, Monitor, Proposer
from traincheck_relations.replay import Replay
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.invariants import Params

if TYPE_CHECKING:
    from types import TracebackType

    from traincheck_relations.api import Relation
    from traincheck_trace_schema.reading import Run

_CALL_KINDS = frozenset(("call_begin", "call_end", "call_error"))

_Watcher = TypeVar("_Watcher", Proposer, Monitor)
_Given = TypeVar("_Given")
_Names: TypeAlias = "frozenset[str]"


@attrs.frozen
class Fault:
    """A relation that failed while it looked at a run, and was dropped from there on."""

    relation: str
    error: str


@attrs.define
class Seen:
    """What a run showed, whether or not a relation asked for it."""

    events: int = 0
    steps: set[int] = attrs.field(factory=set)  # the training steps, from 0
    functions: set[str] = attrs.field(factory=set)  # names of called functions, their bases too
    kinds: set[str] = attrs.field(factory=set)
    bases: dict[str, tuple[str, ...]] = attrs.field(factory=dict)  # what a function overrides

    def note(self, event: Event) -> None:
        """Take the next event."""
        self.events += 1
        if event.kind == "step" and event.window.step >= 0:
            self.steps.add(event.window.step)
        elif event.kind == "function":
            record: Mapping[str, object] = event.record
            bases = record.get("bases")
            if isinstance(bases, Sequence):
                self.bases[str(record["name"])] = tuple(map(str, bases))


@attrs.frozen
class Proposals:
    """What may hold in a run: the candidates of each relation."""

    candidates: Mapping[str, tuple[Params, ...]]
    faults: tuple[Fault, ...]
    seen: Seen


def propose(run: Run, relations: Mapping[str, Relation]) -> Proposals:
    """Let relations look at a run once and propose what may hold in it."""
    audience = _Audience[Proposer]()
    for name, relation in relations.items():
        audience.admit(name, relation.proposer)
    for item in Replay(run):
        if isinstance(item, Event):
            for follower in audience.wanted_by(item):
                with follower:
                    follower.watcher.on_event(item)
    candidates: dict[str, tuple[Params, ...]] = {}
    for follower in audience.followers():
        with follower:
            candidates[follower.name] = tuple(follower.watcher.finish())
    return Proposals(candidates, tuple(audience.faults), audience.seen)


class Watch:
    """Monitors that follow one run. To be iterated once: gives each example and its relation."""

    def __init__(
        self,
        run: Run,
        relations: Mapping[str, Relation],
        params: Mapping[str, Sequence[Params]],
    ) -> None:
        """Make one monitor for each relation in `params`; each must be in `relations`."""
        self._run = run
        self._audience = _Audience[Monitor]()
        for name, claims in params.items():
            if claims:
                self._audience.admit(name, partial(relations[name].monitor, claims), len(claims))

    @property
    def faults(self) -> Sequence[Fault]:
        """The relations that were dropped so far."""
        return self._audience.faults

    @property
    def seen(self) -> Seen:
        """What the run showed so far."""
        return self._audience.seen

    def __iter__(self) -> Iterator[tuple[str, Example]]:
        for item in Replay(self._run):
            if isinstance(item, Event):
                for follower in self._audience.wanted_by(item):
                    yield from _examples(follower, follower.watcher.on_event, item)
            elif isinstance(item, Gap):
                for follower in self._audience.followers():
                    with follower:
                        follower.watcher.on_gap(item)
            else:
                for follower in self._audience.followers():
                    yield from _examples(follower, follower.watcher.on_window_end, item.window)
        # Whether the trace is complete is known only now that it was read to its end.
        is_complete = not self._run.incomplete_because()
        for follower in self._audience.followers():
            yield from _examples(follower, _at_end(follower.watcher), is_complete)


def _at_end(monitor: Monitor) -> Callable[[bool], Iterable[Example]]:
    return lambda is_complete: monitor.on_end(complete=is_complete)


def _examples(
    follower: _Follower[Monitor], handle: Callable[[_Given], Iterable[Example]], given: _Given
) -> Iterator[tuple[str, Example]]:
    """Yield what a monitor makes of an event: all of it, or nothing if it fails."""
    examples: tuple[Example, ...] = ()
    with follower:
        examples = tuple(map(follower.checked, handle(given)))
    for example in examples:
        yield follower.name, example


@attrs.define(eq=False)
class _Follower(Generic[_Watcher]):
    """One relation's proposer or monitor during a run; as a context, it takes its failures."""

    name: str
    watcher: _Watcher
    _fail: Callable[[str, Exception], None]
    _params: int = 0  # how many claims the watcher follows

    def checked(self, example: Example) -> Example:
        """Return an example, if it is one that its users can handle."""
        if not 0 <= example.param < self._params:
            raise ValueError(f"an example of param {example.param}, of {self._params}")
        for name, value in example.context.items():
            if not isinstance(value, str | int | float | None):
                raise TypeError(f"the context says {name} is {value!r}, which is no scalar")
        return example

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, TraincheckError):
            return False
        self._fail(self.name, error)
        return True


class _Audience(Generic[_Watcher]):
    """Who follows a run, and who wants which of its events."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.seen = Seen()
        self._followers: dict[str, _Follower[_Watcher]] = {}
        self._routes: dict[str | tuple[str, _Names], tuple[_Follower[_Watcher], ...]] = {}

    def admit(self, name: str, make: Callable[[], _Watcher], params: int = 0) -> None:
        """Let a relation follow so many claims, unless making its watcher fails."""
        try:
            watcher = make()
        except TraincheckError:
            raise
        except Exception as error:  # noqa: BLE001  a plugin may fail in any way; it is told
            self._drop(name, error)
        else:
            self._followers[name] = _Follower(name, watcher, self._drop, params)

    def followers(self) -> tuple[_Follower[_Watcher], ...]:
        """Return those who did not fail so far."""
        return tuple(self._followers.values())

    def wanted_by(self, event: Event) -> tuple[_Follower[_Watcher], ...]:
        """Return who wants an event."""
        self.seen.note(event)
        key = (event.kind, _names(event)) if event.kind in _CALL_KINDS else event.kind
        route = self._routes.get(key)
        return self._find_route(key) if route is None else route

    def _find_route(self, key: str | tuple[str, _Names]) -> tuple[_Follower[_Watcher], ...]:
        kind, names = (key, None) if isinstance(key, str) else key
        self.seen.kinds.add(kind)
        self.seen.functions.update(names or ())
        route = tuple(
            follower
            for follower in self._followers.values()
            for wants in (follower.watcher.interests,)
            if kind in wants.kinds
            and (names is None or not wants.functions or names & wants.functions)
        )
        self._routes[key] = route
        return route

    def _drop(self, name: str, error: Exception) -> None:
        self.faults.append(Fault(name, f"{type(error).__name__}: {error}"))
        self._followers.pop(name, None)
        self._routes.clear()


def _names(event: Event) -> _Names:
    if event.call is not None:
        return event.call.names
    return frozenset((str(event.record["function"]),))
