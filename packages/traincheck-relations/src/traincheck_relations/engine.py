"""The one engine of inference and checking: feeds a run's events to those who asked for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import attrs

from traincheck_relations.api import Event, Example, Gap, Monitor, Proposer
from traincheck_relations.audience import Audience, Fault, Follower, Seen
from traincheck_relations.replay import Replay
from traincheck_trace_schema.invariants import Param, Params
from traincheck_trace_schema.reading import WindowEnd

if TYPE_CHECKING:
    from traincheck_relations.api import Relation
    from traincheck_relations.replay import Source
    from traincheck_trace_schema.reading import Run, StreamItem

__all__ = ["Fault", "Monitors", "Proposals", "Seen", "Tell", "Watch", "propose"]

_TOLD_EVERY = 4096  # items of a run, after which progress is told

_NONE: Mapping[str, frozenset[int]] = MappingProxyType({})

_Item = TypeVar("_Item")
Tell: TypeAlias = "Callable[[int], None]"  # is told how many more items of a run were read


@attrs.frozen
class Proposals:
    """What may hold in a run: the candidates of each relation.

    `callers`: for each function that was called, by the name it was recorded with, those whose
    calls it was made in directly; None stands for the program itself.
    """

    candidates: Mapping[str, tuple[Params, ...]]
    faults: tuple[Fault, ...]
    seen: Seen
    callers: Mapping[str, frozenset[str | None]] = attrs.field(factory=dict)


def propose(run: Run, relations: Mapping[str, Relation], tell: Tell | None = None) -> Proposals:
    """Let relations look at a run once and propose what may hold in it."""
    audience = Audience[Proposer]()
    for name, relation in relations.items():
        audience.admit(name, relation.proposer)
    callers: defaultdict[str, set[str | None]] = defaultdict(set)
    replay = Replay(run)
    for occurrence in map(replay.take, _told(run.stream(), tell)):
        if not isinstance(occurrence, Event):
            continue
        kind, record, call = occurrence.kind, occurrence.record, occurrence.call
        if kind == "call_begin" and call is not None:
            callers[call.function].add(None if call.parent is None else call.parent.function)
        for follower in audience.wanted_by(kind, record, replay.called_in(record, call)):
            _give(follower, occurrence)
    candidates: dict[str, tuple[Params, ...]] = {}
    for follower in audience.followers():
        if (claims := _finished(follower)) is not None:
            candidates[follower.name] = claims
    return Proposals(
        candidates,
        tuple(audience.faults),
        audience.seen,
        {name: frozenset(of) for name, of in callers.items()},
    )


class Monitors:
    """The monitors of claims, which follow a run item by item; its trace may still grow."""

    def __init__(
        self,
        source: Source,
        relations: Mapping[str, Relation],
        params: Mapping[str, Sequence[Params]],
        always: Mapping[str, frozenset[int]] = _NONE,
    ) -> None:
        """Make one monitor for each relation in `params`; each must be in `relations`.

        Args:
            source: The run.
            relations: The relations, by name.
            params: Of each, what is claimed.
            always: Of each, the places of those params whose examples' contexts nobody asks for.
        """
        self._replay = Replay(source)
        self._audience = Audience[Monitor]()
        for name, claims in params.items():
            if claims:
                make = partial(relations[name].monitor, claims)
                self._audience.admit(name, make, len(claims), always.get(name, frozenset()))

    @property
    def faults(self) -> Sequence[Fault]:
        """The relations that were dropped so far."""
        return self._audience.faults

    @property
    def seen(self) -> Seen:
        """What the run showed so far."""
        return self._audience.seen

    def take(self, item: StreamItem | WindowEnd) -> Iterable[tuple[str, Example]]:
        """Take the next item of the stream; return each example that it completes, by relation."""
        # Each record of each trace passes here: one that concerns nobody costs a look-up.
        if isinstance(item, WindowEnd):
            self._replay.end(item)
            window = item.window
            return self._from_each(lambda monitor: monitor.on_window_end(window))
        record = item.record
        kind = record["kind"]
        if kind == "gap":
            gap = self._replay.gap(item)
            for follower in self._audience.followers():
                _on_gap(follower, gap)
            return ()
        followed = self._replay.follow(item)
        followers = self._audience.wanted_by(kind, record, followed[0])
        if not followers:
            return ()
        event = Event(kind, record, *followed[1:])
        return [
            (follower.name, example)
            for follower in followers
            for example in _on_event(follower, event)
        ]

    def finish(self, *, is_complete: bool) -> Iterator[tuple[str, Example]]:
        """Yield what can be said only now that the run is over; is its trace all of it?"""
        yield from self._from_each(lambda monitor: monitor.on_end(complete=is_complete))

    def _from_each(
        self, ask: Callable[[Monitor], Iterable[Example]]
    ) -> Iterator[tuple[str, Example]]:
        for follower in self._audience.followers():
            for example in _asked(follower, ask):
                yield follower.name, example


class Watch(Monitors):
    """Monitors of a run that has ended. To be iterated once: gives each example, by relation."""

    def __init__(
        self,
        run: Run,
        relations: Mapping[str, Relation],
        params: Mapping[str, Sequence[Params]],
        tell: Tell | None = None,
    ) -> None:
        """Make one monitor for each relation in `params`; each must be in `relations`."""
        super().__init__(run, relations, params)
        self._run = run
        self._tell = tell

    def __iter__(self) -> Iterator[tuple[str, Example]]:
        for item in _told(self._run.stream(), self._tell):
            yield from self.take(item)
        # Whether the trace is complete is known only now that it was read to its end.
        yield from self.finish(is_complete=not self._run.incomplete_because())


def _give(follower: Follower[Proposer], event: Event) -> None:
    try:
        follower.watcher.on_event(event)
    except Exception as error:  # noqa: BLE001  a plugin may fail in any way; it is told
        follower.fail(error)


def _finished(follower: Follower[Proposer]) -> tuple[Params, ...] | None:
    """Return what a relation proposes; None if it fails."""
    try:
        return tuple(map(_claim, follower.watcher.finish()))
    except Exception as error:  # noqa: BLE001  as above
        follower.fail(error)
    return None


def _claim(params: object) -> Params:
    """Return what a relation proposes, if its users can handle it."""
    if not isinstance(params, tuple) or not all(isinstance(one, Param) for one in params):
        raise TypeError(f"proposed {params!r:.80}, which is no tuple of params")
    hash(params)
    return params


def _told(items: Iterable[_Item], tell: Tell | None) -> Iterator[_Item]:
    """Yield items, and tell from time to time how many more there were."""
    if tell is None:
        yield from items
        return
    number = 0
    for number, item in enumerate(items, start=1):
        yield item
        if number % _TOLD_EVERY == 0:
            tell(_TOLD_EVERY)
    tell(number % _TOLD_EVERY)


def _on_event(follower: Follower[Monitor], event: Event) -> Sequence[Example]:
    """Return what a monitor makes of an event: all of it, or nothing if it fails."""
    try:
        return [follower.checked(example) for example in follower.watcher.on_event(event)]
    except Exception as error:  # noqa: BLE001  a plugin may fail in any way; it is told
        follower.fail(error)
    return ()


def _asked(
    follower: Follower[Monitor], ask: Callable[[Monitor], Iterable[Example]]
) -> Sequence[Example]:
    """Return what a monitor answers: all of it, or nothing if it fails."""
    try:
        return [follower.checked(example) for example in ask(follower.watcher)]
    except Exception as error:  # noqa: BLE001  as above
        follower.fail(error)
    return ()


def _on_gap(follower: Follower[Monitor], gap: Gap) -> None:
    try:
        follower.watcher.on_gap(gap)
    except Exception as error:  # noqa: BLE001  as above
        follower.fail(error)
