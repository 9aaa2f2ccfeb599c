"""`VarPeriodicChangeRelation`: a variable changes every n training steps.

- A buffer of a type of module, such as the statistics of `torch.nn.BatchNorm2d`: it changes in each
  training step (n = 1); or it does not in a step in which its module is in evaluation mode (n = 0).
- A model that no optimizer trains, such as an average of the weights or a target network, or a
  buffer that changes more seldom: n steps lie between two changes. Such an n is of one program, so
  the claim is made of models whose parameters have the same names.

Judged is each training step in which an optimizer stepped, when the next one begins. A step with
evaluation says nothing, nor does a module that is in evaluation mode while its model is in training
mode (it is frozen), nor for n = 1 a model that no optimizer trains. Where steps were left out, the
next change is waited for. When an average begins, and how often it follows, is a setting: a period
is asked for once the run has kept it. One that never changes in a whole run is told at its end, if
it changed from the start where that was learnt.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import attrs

from traincheck_relations.api import Event, EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import run_properties
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.variables.period_claim import PeriodClaim
from traincheck_relations.variables.step_sights import Key, StepSight, StepSights
from traincheck_relations.variables.training_steps import (
    FUNCTIONS,
    KINDS,
    TrainingStep,
    TrainingSteps,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Gap, Monitor, Proposer
    from traincheck_trace_schema.invariants import Invariant, Params

_PERIODS = 10  # that pass without any change, before something counts as never changed
_ENOUGH = 3  # equal periods in a row; how many make an invariant is up to inference


class VarPeriodicChangeRelation:
    """A buffer changes in each training step, or a variable every n of them."""

    name: ClassVar[str] = "VarPeriodicChangeRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return PeriodicChangeProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        claim = PeriodClaim.of(params)
        variables = {"module": frozenset(("training",))}
        variables["parameter" if claim.is_of_model else "buffer"] = frozenset(("data",))
        if not claim.is_of_model:
            variables["parameter"] = frozenset(("requires_grad",))
        return Requirements(functions=dict.fromkeys(FUNCTIONS, frozenset()), variables=variables)

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return PeriodicChangeMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        claim = PeriodClaim.of(params)
        what = (
            f"The parameters of {claim.key[0]} change"
            if claim.is_of_model
            else f"The {claim.key[1]} of each {claim.key[0]} changes"
        )
        if claim.every == 0:
            return (
                f"The {claim.key[1]} of a {claim.key[0]} stays as it is in a training step "
                "in which it is in evaluation mode"
            )
        return f"{what} {_in_words(claim.every)}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        every = PeriodClaim.of(params).every
        if every == 0:
            return (
                "what calls train() on a module that was to stay as it is, as model.train() at the "
                "beginning of an epoch; whether something else writes to its buffers"
            )
        if every == 1:
            return (
                "whether the model stays in evaluation mode after a validation (train() is "
                "missing, or called elsewhere); whether the module is called at all in training; "
                "whether it was frozen"
            )
        return (
            "under which condition the variable is updated, as an average or a copy of the model: "
            "its interval, what it counts (batches, or steps of the optimizer), when it begins; "
            "whether what is updated is this model, or a copy of it"
        )

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        """Keep one buffer of those of a type of module that change alike."""
        kept: dict[object, Invariant] = {}
        for one in sorted(invariants, key=lambda one: PeriodClaim.of(one.params).key):
            claim = PeriodClaim.of(one.params)
            alike = claim.key[0], claim.every, claim.layout, repr(one.precondition)
            kept.setdefault(alike, one)
        return list(kept.values())

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        return 0.8 if PeriodClaim.of(params).layout is None else 0.5


@attrs.define(eq=False)
class _Rhythm:
    """How often a variable changed in a run."""

    since: int | None = None  # the first step that was judged
    first: int | None = None  # the step of its first change
    last: int | None = None  # that of its last one
    period: int | None = None
    times: int = 0
    is_regular: bool = True

    def take(self, step: TrainingStep, *, has_changed: bool) -> None:
        """Take the next step."""
        if self.since is None:
            self.since = step.number
        if not step.is_adjacent:
            self.last = None
        if not has_changed:
            return
        if self.first is None:
            self.first = step.number
        if self.last is not None:
            found = step.number - self.last
            self.is_regular &= self.period in {None, found}
            self.period, self.times = found, self.times + 1
        self.last = step.number

    @property
    def is_from_start(self) -> bool:
        """Whether its first change came after one period."""
        if self.first is None or self.since is None or self.period is None:
            return False
        return self.first - self.since < self.period


class PeriodicChangeProposer:
    """Proposes the period that all variables of a kind kept."""

    interests = Interests(kinds=KINDS, functions=FUNCTIONS)

    def __init__(self) -> None:
        self._steps = TrainingSteps()
        self._sights = StepSights()
        self._rhythms: defaultdict[tuple[int, Key, str], _Rhythm] = defaultdict(_Rhythm)
        self._evaluating: set[Key] = set()
        self._layouts: set[str | None] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        step = self._steps.on_event(event)
        if event.kind == "var" and event.is_main:
            self._sights.on_var(event)
        if step is None:
            return
        self._layouts.add(event.run.model())
        for sight in self._sights.of_step(event, step):
            self._rhythms[event.process, sight.key, sight.name].take(
                step, has_changed=sight.has_changed
            )
            if sight.is_evaluating and not step.has_evaluated:
                self._evaluating.add(sight.key)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        by_key: defaultdict[Key, list[_Rhythm]] = defaultdict(list)
        for (_, key, _), rhythm in self._rhythms.items():
            by_key[key].append(rhythm)
        layout = self._layouts.pop() if len(self._layouts) == 1 else None
        for key, rhythms in sorted(by_key.items()):
            periods = {one.period for one in rhythms if one.period is not None}
            regular = all(one.is_regular for one in rhythms)
            if key[1] and 1 in periods:
                yield PeriodClaim(key, 1, None).params()
            elif (
                len(periods) == 1
                and regular
                and layout
                and all(one.times >= _ENOUGH for one in rhythms)
            ):
                from_start = all(one.is_from_start for one in rhythms)
                yield PeriodClaim(key, periods.pop(), layout, from_start).params()
            if key[1] and key in self._evaluating:
                yield PeriodClaim(key, 0, None).params()


@attrs.define(eq=False)
class _Waiting:
    """What has not changed since the run began."""

    every: int
    sight: StepSight
    due: Event  # the end of the step in which it should have
    steps: int = 0


class PeriodicChangeMonitor(EventMonitor):
    """Judges each training step when the next one begins."""

    interests = Interests(kinds=KINDS, functions=FUNCTIONS)

    def __init__(self, params: Sequence[Params]) -> None:
        self._steps = TrainingSteps()
        self._claims: defaultdict[Key, list[tuple[int, PeriodClaim]]] = defaultdict(list)
        for index, param in enumerate(params):
            claim = PeriodClaim.of(param)
            self._claims[claim.key].append((index, claim))
        self._sights = StepSights(frozenset(self._claims))
        self._last: dict[tuple[int, str], int] = {}  # by process and name: the last change
        self._kept: set[tuple[int, str, int]] = set()  # by process and name: periods seen
        self._changed: set[tuple[int, str]] = set()  # by process and name: what ever did
        self._waiting: dict[tuple[int, str, int], _Waiting] = {}  # that, and a claim from the start

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        step = self._steps.on_event(event)
        if event.kind == "var" and event.is_main:
            self._sights.on_var(event)
        if step is None or step.end is None:
            return ()
        return self._examples(event, step, step.end)

    def on_gap(self, gap: Gap) -> None:
        """Give up the step in which records are missing, and when variables changed."""
        self._steps.on_gap(gap)
        for key in [key for key in self._last if key[0] == gap.process]:
            del self._last[key]

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        """Tell what was to change from the start, and never did."""
        del complete
        for (process, name, index), one in self._waiting.items():
            if (process, name) not in self._changed and one.steps >= _PERIODS * one.every:
                yield Example(
                    param=index,
                    held=False,
                    context={**run_properties(one.due), **one.sight.context},
                    at=position_of(one.due, None, name),
                    evidence=partial(records_of, one.due),
                    happened=f"{name} never changed in {one.steps} training steps",
                )

    def _examples(self, event: Event, step: TrainingStep, end: Event) -> Iterator[Example]:
        layout = event.run.model()
        for sight in self._sights.of_step(event, step):
            key = event.process, sight.name
            last = self._last.get(key) if step.is_adjacent else None
            for index, claim in self._claims[sight.key]:
                if claim.layout not in {None, layout}:
                    continue
                if claim.is_from_start:
                    self._wait((*key, index), claim, sight, end)
                happened = _judge(claim.every, sight, step, last)
                if happened is not None and self._is_asked(key, claim, is_kept=not happened):
                    yield Example(
                        param=index,
                        held=not happened,
                        context={**run_properties(end), **sight.context},
                        at=position_of(end, None, sight.name),
                        evidence=partial(records_of, end),
                        happened=happened,
                    )
            if sight.has_changed:
                self._changed.add(key)
                self._last[key] = step.number
            elif not step.is_adjacent:
                self._last.pop(key, None)

    def _wait(
        self, key: tuple[int, str, int], claim: PeriodClaim, sight: StepSight, end: Event
    ) -> None:
        """Count the steps in which something was to change that never did so far."""
        if key[:2] in self._changed:
            self._waiting.pop(key, None)
            return
        one = self._waiting.setdefault(key, _Waiting(claim.every, sight, end))
        one.steps += 1
        if one.steps == claim.every:
            one.due = end

    def _is_asked(self, key: tuple[int, str], claim: PeriodClaim, *, is_kept: bool) -> bool:
        """Whether a variable is to keep a period: one that is a setting, if the run kept it."""
        period = *key, claim.every
        if is_kept:
            self._kept.add(period)
        return claim.layout is None or period in self._kept


def _judge(every: int, sight: StepSight, step: TrainingStep, last: int | None) -> str | None:
    """Say what was wrong in a step, or "" if nothing; None if the step says nothing."""
    if every == 0:
        what = f"{sight.name} changed in a training step, though its module is in evaluation mode"
        says_nothing = step.has_evaluated or not sight.is_evaluating
        wrong = sight.has_changed
    elif every == 1 and not sight.is_of_model:
        mode = " (its module is in evaluation mode)" if sight.is_evaluating else ""
        what = f"{sight.name} did not change in a training step{mode}"
        says_nothing = step.has_evaluated or sight.is_frozen or not sight.is_trained
        wrong = not sight.has_changed
    else:
        passed = every if last is None else step.number - last
        not_now = "changed" if sight.has_changed else "did not change"
        what = f"{sight.name} {not_now} after {passed} training steps, not {_in_words(every)}"
        says_nothing = last is None or passed > every or (passed < every and not sight.has_changed)
        wrong = sight.has_changed != (passed == every)
    return None if says_nothing else what if wrong else ""


def _in_words(every: int) -> str:
    return "in each training step" if every == 1 else f"every {every} training steps"
