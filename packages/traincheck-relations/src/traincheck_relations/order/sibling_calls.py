"""Which functions of the training protocol are called side by side: by the program or by a call."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from traincheck_relations.api import Interests
from traincheck_relations.order.protocol import are_related, protocol_function
from traincheck_relations.order.turns import CALL_KINDS, Lane, Turns, lane_of

if TYPE_CHECKING:
    from traincheck_relations.api import Call, Event


class SiblingCalls:
    """Collects pairs of functions, in the order in which a training step called them.

    Bounded by the number of the protocol's functions; what a step called is forgotten at its end.
    """

    interests = Interests(kinds=CALL_KINDS | {"step"})

    def __init__(self) -> None:
        self.pairs: set[tuple[str, str]] = set()
        self._turns = Turns(_functions_of)
        self._called: defaultdict[int, dict[tuple[Lane, int | None], set[str]]] = defaultdict(dict)

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if event.kind == "step":
            if event.record.get("eval_step") is None:
                self._called.pop(event.process, None)
            return
        call = event.call
        functions = self._turns.take(event) if event.is_main else ()
        if call is None or event.kind != "call_begin" or event.window.step < 0:
            return
        parent = None if call.parent is None else call.parent.id
        for function in functions:
            siblings = self._called[event.process].setdefault((lane_of(event), parent), set())
            self.pairs.update((each, function) for each in siblings if are_related(each, function))
            siblings.add(function)


def _functions_of(call: Call) -> tuple[str, ...]:
    function = protocol_function(call)
    return () if function is None else (function,)
