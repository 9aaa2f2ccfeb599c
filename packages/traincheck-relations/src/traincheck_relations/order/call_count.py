"""`CallCountRelation`: how often a function of the training protocol is called in each step.

`exactly` so often by the one tracked object that it is about, as the optimizer; `at_least` so often
in all; or as often as another function. Or whether it is called at all: `ever`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import attrs

from traincheck_relations.api import (
    Context,
    Event,
    EventMonitor,
    Example,
    Gap,
    Interests,
    Position,
)
from traincheck_relations.occasion import records_of
from traincheck_relations.order.call_count_claims import CallCount, without_implied
from traincheck_relations.order.causes import usual_causes
from traincheck_relations.order.protocol import CORE, ZERO_GRAD, counted_names, requirements
from traincheck_relations.order.step_bounds import step_properties
from traincheck_relations.order.step_count_proposer import CallCountProposer
from traincheck_relations.order.step_counts import KINDS, TRAINING, StepCounter, StepCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Monitor, Proposer, Requirements
    from traincheck_trace_schema.invariants import Invariant, Params


# So many steps in a row with a call make one without it a finding: a scheduler that steps once in
# an epoch does not do so in each step, and a program may have none.
_HABIT = 2


class CallCountRelation:
    """In each training step a function is called so often, or as often as another."""

    name: ClassVar[str] = "CallCountRelation"
    group: ClassVar[str] = "call_count"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return CallCountProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`: also whether there was training."""
        claim = CallCount.of(params)
        needs = requirements((*claim.functions, *TRAINING))
        if claim.model is None:
            return needs
        return attrs.evolve(needs, variables={"parameter": frozenset(("requires_grad",))})

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return CallCountMonitor([CallCount.of(one) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        return f"In each training step {CallCount.of(params).in_words()}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        return usual_causes(CallCount.of(params).functions)

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        """Drop what follows from an exact number."""
        return without_implied(invariants)

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        return 0.7 if CORE.issuperset(CallCount.of(params).functions) else 0.5


class CallCountMonitor(EventMonitor):
    """Judges each training step that was recorded whole, when the next one begins."""

    def __init__(self, claims: Sequence[CallCount]) -> None:
        self._claims = claims
        self._exact = frozenset(one.function for one in claims if one.number_is_exact)
        names = counted_names({*TRAINING, *(name for one in claims for name in one.functions)})
        self.interests = Interests(kinds=KINDS, functions=frozenset(names))
        self._counter = StepCounter(
            lambda call: tuple(sorted({f for name in call.names for f in names.get(name, ())}))
        )
        self._owners: dict[tuple[int, str], frozenset[str | None]] = {}
        self._in_a_row: defaultdict[int, Counter[str]]  # by process: steps with a call
        self._in_a_row = defaultdict(Counter)
        self._called: defaultdict[int, set[str]] = defaultdict(set)  # by process: in any step
        self._lossy: set[int] = set()  # processes of which records were lost: a call may be too

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        step = self._counter.on_event(event)
        return () if step is None else self._judge(step, event)

    def on_gap(self, gap: Gap) -> None:
        """Forget the step in which records are missing."""
        self._counter.on_gap(gap)
        if gap.reason != "sampling":
            self._lossy.add(gap.process)

    def _judge(self, step: StepCounts, end: Event) -> Iterator[Example]:
        context = step_properties(step.begin)
        # What is never called costs little: claims may be many, of which few are about a program.
        in_a_row = self._in_a_row[step.begin.process]
        expected = {*step.counts, *CORE, *(name for name, of in in_a_row.items() if of >= _HABIT)}
        owners = {
            name: self._expected(step, name)
            for name in {*expected, *(name for _, name in self._owners)} & self._exact
        }
        called = self._called[step.begin.process]
        called.update(step.counts)
        has_nothing_to_clear = step.begin.window.step == 0 and not step.of(ZERO_GRAD)
        for index, claim in enumerate(self._claims):
            if claim.asks_if_ever:
                if claim.model == step.begin.run.model() and step.can_judge(claim.function):
                    held = claim.function in called
                    if not held and step.begin.process in self._lossy:
                        continue
                    told = claim.what_was_counted(0, None)
                    yield _example(index, claim, step, end, context, "" if held else told)
                continue
            if not expected.issuperset(claim.functions) or not step.can_judge(*claim.functions):
                continue
            if ZERO_GRAD in claim.functions and has_nothing_to_clear:
                continue
            if claim.number_is_exact:
                # How often each of several has its turn, as a critic, is the program's own affair.
                for owner in owners[claim.function] if len(owners[claim.function]) == 1 else ():
                    number = step.by(claim.function, owner)
                    held = number == claim.number
                    told = claim.what_was_counted(number, owner)
                    yield _example(index, claim, step, end, context, "" if held else told)
            else:
                number = step.of(claim.function)
                wanted = claim.number if claim.other is None else step.of(claim.other)
                held = number >= wanted if claim.other is None else number == wanted
                told = claim.what_was_counted(number, None, wanted)
                yield _example(index, claim, step, end, context, "" if held else told)

        self._in_a_row[step.begin.process] = Counter(
            {name: in_a_row[name] + 1 for name in step.counts}
        )

    def _expected(self, step: StepCounts, function: str) -> Sequence[str | None]:
        """Return the objects that should have called a function: those that did so before.

        Where a new one takes over, as an optimizer that was made again, the others may be gone.
        """
        key = step.begin.process, function
        seen = frozenset(step.owners(function))
        known = self._owners.get(key, frozenset())
        if not step.can_judge(function):
            return ()
        expected = seen if seen - known else known
        self._owners[key] = expected
        return sorted(expected, key=str) or (None,)


def _example(  # noqa: PLR0913, PLR0917  one occasion is all of these
    index: int,
    claim: CallCount,
    step: StepCounts,
    end: Event,
    context: Context,
    happened: str,
) -> Example:
    begin = step.begin
    return Example(
        param=index,
        held=not happened,
        context=context,
        at=Position(
            rank=begin.rank, window=begin.window, stage=begin.stage, function=claim.function
        ),
        evidence=partial(records_of, begin, end),
        happened=happened,
    )
