"""Compares the contents of values between calls and between ranks.

What happens in evaluation, in processes that load data, or before the first step is no occasion.
Where the first two contents of a process are equal, it may have one batch only, as if all data are
taken at once: nothing is said before another content comes. Of the program's own functions it is
said once the one content was there in several steps: the program that the claim was learnt from,
with the same model, had more than one.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_relations.api import Call, Event, EventMonitor, Example, Interests
from traincheck_relations.conditions.own_program import names_own
from traincheck_relations.conditions.properties import (
    FORWARD,
    call_properties,
    object_name,
    run_properties,
)
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.values.call_values import EVALUATES, has_gradients, value_of
from traincheck_trace_schema.invariants import InputOutputParam

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from traincheck_relations.api import Gap
    from traincheck_trace_schema.values import Json
    from traincheck_trace_schema.window import Window

_REMEMBERED = 1 << 16  # contents of one claim and process; later ones are compared with these
_SEVERAL = 4  # steps after which one content of a program that had many is told

Content: TypeAlias = "tuple[str, ...]"
_Slot: TypeAlias = "tuple[int, int]"  # claim, restart of the job


@attrs.frozen
class Claim:
    """Values of one function, and between what they differ: `calls`, `run` or `ranks`."""

    values: tuple[InputOutputParam, ...]
    between: str

    @property
    def is_own(self) -> bool:
        """Whether it is about a function of the program, and so about one model."""
        return names_own(self.values)


@attrs.frozen(eq=False)
class Sighting:
    """A content, and the call in which it was seen."""

    content: Content
    call: Call
    event: Event


class DistinctMonitor(EventMonitor):
    """Compares contents as calls return; between ranks, when all have left a window."""

    def __init__(
        self, claims: Sequence[Claim], content_of: Callable[[Json], Content | None]
    ) -> None:
        self._claims: defaultdict[str, list[tuple[int, Claim]]] = defaultdict(list)
        for index, claim in enumerate(claims):
            self._claims[claim.values[0].api_name].append((index, claim))
        self._own = frozenset(index for index, claim in enumerate(claims) if claim.is_own)
        self._content_of = content_of
        self._last: dict[tuple[int, int], Sighting] = {}  # by process and claim
        self._steps: defaultdict[tuple[int, int], dict[Content, int]] = defaultdict(dict)
        self._only: dict[tuple[int, int], Content | None] = {}  # None: there were several
        self._held_back: dict[tuple[int, int], Example] = {}  # until there are: the first
        self._by_rank: defaultdict[Window, dict[_Slot, dict[int, list[Sighting]]]]
        self._by_rank = defaultdict(dict)
        self._lost: set[Window] = set()
        self.interests = Interests(
            kinds=frozenset(("call_end",)), functions=frozenset(self._claims)
        )

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        call = event.call
        if call is None or not is_compared(event, call):
            return ()
        return [
            example
            for name in call.names
            for index, claim in self._claims.get(name, ())
            for example in self._examples(index, claim, event, call)
        ]

    def on_window_end(self, window: Window) -> Iterable[Example]:
        """Compare what the ranks had in a window."""
        by_slot = self._by_rank.pop(window, {})
        if window in self._lost:
            self._lost.discard(window)
            return
        for (index, _), by_rank in by_slot.items():
            first = next(iter(by_rank.values()))[0]
            is_whole = len(by_rank) == len(first.event.run.world().get("world", ()))
            if is_whole and len({len(sightings) for sightings in by_rank.values()}) == 1:
                for together in zip(*by_rank.values(), strict=True):
                    yield _between_ranks(index, together)

    def on_gap(self, gap: Gap) -> None:
        """Forget the last calls of the process, and what the ranks had in the window."""
        for key in [key for key in self._last if key[0] == gap.process]:
            del self._last[key]
        if self._has_ranks():
            self._lost.add(gap.window)

    def _has_ranks(self) -> bool:
        return any(one.between == "ranks" for of in self._claims.values() for _, one in of)

    def _examples(self, index: int, claim: Claim, event: Event, call: Call) -> Iterator[Example]:
        values = [value_of(value, call, event.record) for value in claim.values]
        content = self._content_of(values)
        key = (event.process, index)
        if content is None:
            self._last.pop(key, None)  # the next call has another one before it
            return
        sighting = Sighting(content, call, event)
        is_judged = event.window.step >= 0
        yield from self._take(key, content)
        if claim.between == "ranks":
            is_shared = len(event.run.world().get("world", ())) > 1
            if is_judged and is_shared and not event.is_late:
                by_slot = self._by_rank[event.window]
                by_rank = by_slot.setdefault((index, event.restart), {})
                by_rank.setdefault(event.rank, []).append(sighting)
        elif claim.between == "calls":
            last = self._last.get(key)
            self._last[key] = sighting
            if is_judged and last is not None:
                is_same = last.content == content
                example = _example(index, sighting, "the call before" if is_same else None)
                yield from self._if_it_varies(key, example)
        else:
            step = self._steps[key].get(content)
            if is_judged:
                same_as = None if step is None else f"a call in step {step}"
                yield from self._if_it_varies(key, _example(index, sighting, same_as))
            if step is None and len(self._steps[key]) < _REMEMBERED:
                self._steps[key][content] = event.window.step

    def _take(self, key: tuple[int, int], content: Content) -> Iterator[Example]:
        """Take note of a content; if it is the first that differs, say what was kept back."""
        if self._only.setdefault(key, content) not in {None, content}:
            self._only[key] = None
            if (first := self._held_back.pop(key, None)) is not None:
                yield first

    def _if_it_varies(self, key: tuple[int, int], example: Example) -> Iterator[Example]:
        """Yield an example; of what is always the same keep the first one back."""
        if example.held or self._only[key] is None:
            yield example
            return
        first = self._held_back.setdefault(key, example)
        _, index = key
        if index in self._own and example.at.window.step - first.at.window.step >= _SEVERAL:
            self._only[key] = None
            yield self._held_back.pop(key)
            yield example


def is_compared(event: Event, call: Call) -> bool:
    """Whether a call is one of training, with gradients, in a process that trains.

    Of a module that is no part of a tracked model, such as a teacher of the same class, nobody
    knows what it is for.
    """
    is_known = FORWARD not in call.names or object_name(call) is not None
    trains = event.is_main and event.stage not in EVALUATES and has_gradients(call)
    # An optimizer may ask for the loss of one batch several times.
    return is_known and trains and not _is_in_step(call)


def _is_in_step(call: Call) -> bool:
    return any(OPTIMIZER_STEP in one.names for one in call.around())


def _between_ranks(index: int, together: Sequence[Sighting]) -> Example:
    first: dict[Content, int] = {}
    for one in together:
        rank = first.setdefault(one.content, one.event.rank)
        if rank != one.event.rank:
            return _example(index, one, f"rank {rank}")
    return _example(index, together[0], None)


def _example(index: int, sighting: Sighting, same_as: str | None) -> Example:
    event, call = sighting.event, sighting.call
    happened = f"{call.function} had the same data as {same_as}"
    return Example(
        param=index,
        held=same_as is None,
        context=call_properties(call) | run_properties(event),
        at=position_of(event, call),
        evidence=partial(records_of, event),
        happened="" if same_as is None else happened,
    )
