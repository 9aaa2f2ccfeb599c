"""Proposes how often functions of the training protocol are called in a step."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, product
from typing import TYPE_CHECKING

from traincheck_relations.api import Interests
from traincheck_relations.order.call_count_claims import AT_LEAST, EVER, EXACTLY, CallCount
from traincheck_relations.order.protocol import BACKWARD, CORE, ZERO_GRAD, protocol_function
from traincheck_relations.order.step_counts import KINDS, StepCounter, StepCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traincheck_relations.api import Call, Event
    from traincheck_trace_schema.invariants import Params

# How many gradients a program adds up is its own affair; that they are cleared and computed between
# two steps is what `FunctionLeadRelation` claims.
_TAKES_TURNS = (ZERO_GRAD, BACKWARD)
_AVERAGES = ".update_parameters"
_FEW = 2  # different numbers, of which one may be the rule and the other the exception


class CallCountProposer:
    """Bounded by the number of the protocol's functions."""

    interests = Interests(kinds=KINDS)

    def __init__(self) -> None:
        self._counter = StepCounter(_functions_of)
        self._numbers: defaultdict[str, set[int]] = defaultdict(set)
        self._totals: defaultdict[str, set[int]] = defaultdict(set)
        self._owners: defaultdict[str, set[str | None]] = defaultdict(set)
        self._unequal: set[tuple[str, str]] = set()
        self._steps = 0
        self._called: Counter[str] = Counter()  # in how many steps
        self._models: set[str] = set()
        self._last: set[str] = set()  # what was called in the last step
        self._in_a_row: set[str] = set()  # what was called in two steps in a row

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        step = self._counter.on_event(event)
        if step is not None and step.can_judge():
            self._take(step)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return sorted((claim.params() for claim in self._claims()), key=repr)

    def _take(self, step: StepCounts) -> None:
        self._steps += 1
        if (model := step.begin.run.model()) is not None:
            self._models.add(model)
        self._in_a_row |= self._last & step.counts.keys()
        self._last = set(step.counts)
        earlier = self._called.keys()
        new = step.counts.keys() - earlier
        self._unequal.update((min(pair), max(pair)) for pair in product(new, earlier))
        for function, counts in step.counts.items():
            self._called[function] += 1
            self._owners[function].update(counts)
            for number in counts.values():
                _add(self._numbers[function], number)
            _add(self._totals[function], step.of(function))
        self._unequal.update(
            pair
            for pair in combinations(sorted(self._called), 2)
            if step.of(pair[0]) != step.of(pair[1])
        )

    def _claims(self) -> Iterator[CallCount]:
        for function, numbers in self._numbers.items():
            if function not in self._in_a_row:
                continue  # as a scheduler that steps once in an epoch
            if not function.endswith(_AVERAGES):
                yield CallCount(function=function, kind=AT_LEAST, number=1)
            if 1 in numbers and len(numbers) <= _FEW and self._is_rule(function):
                yield CallCount(function=function, kind=EXACTLY, number=1)
        for function, model in product(self._always(), sorted(self._models)):
            yield CallCount(function=function, kind=EVER, number=1, model=model)
        varying = [name for name, totals in self._totals.items() if self._varies(name, totals)]
        for pair in combinations(sorted(varying), 2):
            if pair not in self._unequal:
                yield CallCount(function=pair[0], other=pair[1])

    def _is_rule(self, function: str) -> bool:
        """Whether that a function is called once in a step may be a rule.

        How often a critic learns while a generator does once is a program's own affair, and when an
        average begins to follow, and how often.
        """
        is_alone = len(self._owners[function]) == 1
        return is_alone and function not in _TAKES_TURNS and not function.endswith(_AVERAGES)

    def _always(self) -> list[str]:
        """Return what was called in each step, and that not all training does."""
        others = self._called.keys() - CORE
        return [name for name in sorted(others) if self._called[name] == self._steps]

    def _varies(self, function: str, totals: set[int]) -> bool:
        return len(totals) > 1 or self._called[function] < self._steps


def _add(numbers: set[int], number: int) -> None:
    if len(numbers) <= _FEW:
        numbers.add(number)


def _functions_of(call: Call) -> tuple[str, ...]:
    function = protocol_function(call)
    return () if function is None else (function,)
