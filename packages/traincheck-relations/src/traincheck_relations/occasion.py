"""Where an occasion lies and which records show it, for occasions that are calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.api import Position, RecordRef

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
