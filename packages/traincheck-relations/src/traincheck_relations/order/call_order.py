"""Follows the order of calls: whether one came since another, or since the step began.

A claim is judged at the turns of one function, its *trigger*: did a call of the *other* function
lie complete between the trigger's turn before and this one, or between the begin of the step and
this one? Where calls are about tracked objects, as two optimizers, each has a sequence of its own.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_relations.api import (
    Call,
    Context,
    Event,
    EventMonitor,
    Example,
    Gap,
    Interests,
    RecordRef,
)
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.order.protocol import (
    CORE,
    counted_names,
    is_of_update,
    owner_of,
    sets_mode,
)
from traincheck_relations.order.step_bounds import StepBounds, StepsOfProcesses, step_properties
from traincheck_relations.order.turns import CALL_KINDS, Lane, Turns, lane_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_ANYONE: Final = ""  # stands for whichever object a call is about, or none
_NEVER = -1


@attrs.frozen(kw_only=True)
class Order:
    """A claim: at each turn of `trigger`, a call of `other` came before, and since what."""

    trigger: str
    other: str
    is_within_step: bool = False  # since the step began, not since the trigger's turn before
    is_about_earlier: bool = False  # about the turn before, and what followed it
    # Also before the first step, during evaluations, and if `other` is never called.
    is_unrestricted: bool = False
    happened: str = ""  # what to say where it does not hold


@attrs.define(eq=False)
class _Marks:
    """When the last turn of a function, about one object, began and ended; and that turn."""

    begun: int = _NEVER
    ended: int = _NEVER
    event: Event | None = None
    context: Context | None = None


@attrs.frozen(kw_only=True)
class _Occasion:
    """A turn of a trigger that has begun, and what was found for one claim."""

    index: int
    order: Order
    held: bool
    context: Context
    since: Event | None  # the turn before, from which on the other function was looked for
    begun: int


class OrderMonitor(EventMonitor):
    """Judges orders, at the end of each turn of their triggers."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self._by_trigger: defaultdict[str, list[tuple[int, Order]]] = defaultdict(list)
        for index, order in enumerate(orders):
            self._by_trigger[order.trigger].append((index, order))
        names = counted_names({each for one in orders for each in (one.trigger, one.other)})
        self.interests = Interests(kinds=CALL_KINDS | {"step"}, functions=frozenset(names))
        self._turns = Turns(
            lambda call: tuple(sorted({f for name in call.names for f in names.get(name, ())}))
        )
        self._steps = StepsOfProcesses()
        self._step_began: dict[int, int] = {}
        self._now = 0
        self._marks: defaultdict[Lane, defaultdict[tuple[str, str | None], _Marks]] = defaultdict(
            lambda: defaultdict(_Marks)
        )
        self._occasions: dict[tuple[int, int, str], list[_Occasion]] = {}
        self._with_gaps: set[int] = set()
        self._called: set[tuple[int, str]] = set()
        # A program may have no such thing as the other function: judged once it was called.
        self._waiting: defaultdict[tuple[int, str], dict[object, Example]] = defaultdict(dict)

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        if not event.is_main:
            return ()
        self._now += 1
        if event.kind == "step":
            if event.record.get("eval_step") is None:
                self._steps.on_step(event)
                self._step_began[event.process] = self._now
            return ()
        functions = self._turns.take(event)
        if not functions or event.call is None:
            return ()
        if event.kind == "call_begin":
            return self._begin(event, event.call, functions)
        if event.kind == "call_end":
            return self._end(event, event.call, functions)
        # A program that goes on after an exception has left out what would have come.
        self._steps.spoil(event.process)
        self._forget(event.process)
        return ()

    def on_gap(self, gap: Gap) -> None:
        """Forget the calls before the gap."""
        self._steps.on_gap(gap)
        self._forget(gap.process)

    def _forget(self, process: int) -> None:
        self._turns.forget(process)
        self._with_gaps.add(process)
        for lane in [lane for lane in self._marks if lane[0] == process]:
            del self._marks[lane]
        for key in [key for key in self._occasions if key[0] == process]:
            del self._occasions[key]

    def _begin(self, event: Event, call: Call, functions: Iterable[str]) -> list[Example]:
        lane, owner = lane_of(event), owner_of(call)
        context = step_properties(event)
        if (step := self._steps.current(event.process)) is not None:
            step.has_calls = True
        released: list[Example] = []
        for function in functions:
            if (event.process, function) not in self._called:
                self._called.add((event.process, function))
                released += self._waiting.pop((event.process, function), {}).values()
            found = [
                occasion
                for index, order in self._by_trigger.get(function, ())
                if (occasion := self._occasion(index, order, event, owner, context)) is not None
            ]
            if found:
                self._occasions[event.process, call.id, function] = found
        marks = self._marks[lane]
        for function in functions:
            for key in ((function, owner), (function, _ANYONE)):
                marks[key] = _Marks(self._now, marks[key].ended, event, context)
        return released

    def _end(self, event: Event, call: Call, functions: Iterable[str]) -> Iterator[Example]:
        lane, owner = lane_of(event), owner_of(call)
        for function in functions:
            occasions = self._occasions.pop((event.process, call.id, function), ())
            for occasion in occasions:
                yield from self._judge(occasion, event, call)
            for key in ((function, owner), (function, _ANYONE)):
                self._marks[lane][key].ended = self._now

    def _occasion(
        self, index: int, order: Order, event: Event, owner: str | None, context: Context
    ) -> _Occasion | None:
        """Look back at the begin of a turn; None if it says nothing."""
        step = self._steps.current(event.process)
        if not (order.is_unrestricted or _is_in_step(order, event, step)):
            return None
        lane = lane_of(event)
        own = self._marks[lane][order.trigger, owner]
        other = self._last(lane, order.other, owner)
        is_left_open = other.begun > other.ended  # this turn is inside it
        since = None
        if order.is_within_step:
            bound = self._step_began.get(event.process, _NEVER)
            is_left_open |= step is None or not step.is_whole
        elif own.event is not None:
            bound = own.ended
            is_inside = not sets_mode(order.trigger) and other.begun > own.begun
            is_left_open |= own.ended < own.begun or is_inside
            since = own.event
        else:
            bound = _NEVER
            is_left_open |= event.process in self._with_gaps
        if order.is_about_earlier:
            if since is None or since.window.step < 0 or own.context is None:
                return None
            if not _is_in_step(order, since, step):
                return None
            context = own.context
        held = other.ended > bound
        if is_left_open and not held:
            return None
        return _Occasion(
            index=index, order=order, held=held, context=context, since=since, begun=self._now
        )

    def _judge(self, occasion: _Occasion, event: Event, call: Call) -> Iterator[Example]:
        order, owner = occasion.order, owner_of(call)
        if occasion.held:
            yield self._example(occasion, event, call)
            return
        last = self._last(lane_of(event), order.other, owner)
        if last.begun > occasion.begun and not sets_mode(order.trigger):
            # It does by itself what was missing; but `eval` calls `train` to switch it off.
            return
        example = self._example(occasion, event, call)
        is_due = order.is_unrestricted or order.other in CORE
        if is_due or (event.process, order.other) in self._called:
            yield example
            return
        key = occasion.index, tuple(sorted(occasion.context.items()))
        self._waiting[event.process, order.other].setdefault(key, example)

    @staticmethod
    def _example(occasion: _Occasion, event: Event, call: Call) -> Example:
        return Example(
            param=occasion.index,
            held=occasion.held,
            context=occasion.context,
            at=position_of(event, call),
            evidence=partial(_evidence, occasion.since, event, call),
            happened="" if occasion.held else occasion.order.happened,
        )

    def _last(self, lane: Lane, function: str, owner: str | None) -> _Marks:
        """Return the last turn of a function that belongs to the sequence of an object."""
        marks = self._marks[lane]
        if owner is None:
            return marks[function, _ANYONE]
        return max(marks[function, owner], marks[function, None], key=lambda one: one.begun)


def _evidence(since: Event | None, event: Event, call: Call) -> tuple[RecordRef, ...]:
    before = () if since is None else (since.ref(),)
    return (*before, *evidence_of(event, call))


def _is_in_step(order: Order, event: Event, step: StepBounds | None) -> bool:
    """Whether a call is part of training, where its trigger should be: not of an evaluation."""
    if step is None:
        return False
    return event.stage == step.begin.stage or not is_of_update(order.trigger)
