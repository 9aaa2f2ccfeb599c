"""Where an occasion lies, and which records show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.api import Position, RecordRef
from traincheck_trace_schema.occasion import Place
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_PASS

if TYPE_CHECKING:
    from traincheck_relations.api import Call, Event


def position_of(event: Event, call: Call | None, variable: str | None = None) -> Position:
    """Return where an event lies, at the source line of its call."""
    source = None if call is None else call.begin.get("src")
    return Position(
        rank=event.rank,
        window=event.window,
        stage=event.stage,
        function=None if call is None else call.function,
        variable=variable,
        source=event.run.source(source),
    )


def evidence_of(event: Event, call: Call) -> tuple[RecordRef, ...]:
    """Refer to the begin of a call, and to the event that completed the occasion."""
    return (RecordRef(event.shard, event.rank, call.begin), event.ref())


def records_of(*events: Event) -> tuple[RecordRef, ...]:
    """Refer to the records of events."""
    return tuple(event.ref() for event in events)


def place_of(at: Position) -> Place:
    """Return a position as documents tell it."""
    eval_step = at.window.eval_step
    return Place(
        step=at.window.step,
        eval_step=None if eval_step in (BEFORE_PASS, AFTER_PASS) else eval_step,
        stage=at.stage,
        rank=at.rank,
        function=at.function,
        variable=at.variable,
        source=at.source,
    )
