"""`LastingOptimizerRelation`: an optimizer goes on with what it trains.

One that is made anew in each step has no momentum and no moments: it forgets all that it knew of
gradients. So do schedules that count its steps. A new one may rightly take over, as in a second
phase; one that takes over from one that stepped only once does not. Where each task or client has
its own, that is the program's way, so the claim is made of models whose parameters have the same
names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import object_name, run_properties
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.of_model import ClaimOfModels
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.variables.observed import is_of_parameters, looked_at, stepping
from traincheck_trace_schema.invariants import OccasionParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_relations.api import Event, Gap, Monitor, Proposer

_CLAIM = ClaimOfModels(
    "LastingOptimizerRelation",
    (
        VarTypeParam(var_type="torch.optim.Optimizer", attr_name="held_by", post_value="unchanged"),
        OccasionParam(function=OPTIMIZER_STEP, phase="begin"),
    ),
)


class LastingOptimizerRelation:
    """No optimizer takes over what another one trained in a single step."""

    name: ClassVar[str] = "LastingOptimizerRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return LastingOptimizerProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _CLAIM.model(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": frozenset(("requires_grad",))},
            observe_before=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return LastingOptimizerMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        _CLAIM.model(params)
        return "No optimizer takes over from one that trained the same parameters in a single step"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _CLAIM.model(params)
        return (
            "whether the optimizer is made inside the training loop, or in a function that each "
            "step calls: a new one has no momentum and no moments"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _CLAIM.model(params)
        return 0.8


class LastingOptimizerProposer:
    """Proposes the claim of each model that an optimizer trained in a second step."""

    interests = Interests(kinds=frozenset(("observe",)), functions=frozenset((OPTIMIZER_STEP,)))

    def __init__(self) -> None:
        self._trainers = Trainers()
        self._models: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if self._trainers.before(event) is not None and (model := event.run.model()) is not None:
            self._models.add(model)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return [_CLAIM.of(model) for model in sorted(self._models)]


class LastingOptimizerMonitor(EventMonitor):
    """Asks at each step who made the one before."""

    interests = Interests(kinds=frozenset(("observe",)), functions=frozenset((OPTIMIZER_STEP,)))

    def __init__(self, params: Sequence[Params]) -> None:
        self._claims = _CLAIM.places(params)
        self._trainers = Trainers()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        call = stepping(event)
        replaced = self._trainers.before(event)
        if call is None or replaced is None:
            return ()
        what = f"{object_name(call)} trains what {replaced} trained before, in a single step"
        return [
            Example(
                param=index,
                held=not replaced,
                context=partial(run_properties, event),
                at=partial(position_of, event, call),
                evidence=partial(evidence_of, event, call),
                happened=what if replaced else "",
            )
            for index in self._claims.get(event.run.model() or "", ())
        ]

    def on_gap(self, gap: Gap) -> None:
        """Forget who trained what: steps may be missing."""
        self._trainers.forget(gap.process)


class Trainers:
    """Which optimizer trained each parameter last, and how often it stepped."""

    def __init__(self) -> None:
        self._last: defaultdict[int, dict[int, str]] = defaultdict(dict)  # by process and id
        self._steps: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def before(self, event: Event) -> str | None:
        """Take an event; return whom a step replaces after a single step, or "" if nobody.

        None of what is no step, or the first one of all its parameters.
        """
        call = stepping(event)
        name = None if call is None else object_name(call)
        if name is None or not event.is_main or not is_of_parameters(event):
            return None
        last, steps = self._last[event.process], self._steps[event.process]
        own = [one.id for one in looked_at(event).values() if name in one.holders]
        earlier = {last[id_] for id_ in own if id_ in last}
        is_new = steps[name] == 0
        steps[name] += 1
        last.update(dict.fromkeys(own, name))
        if not earlier:
            return None
        single = sorted(one for one in earlier - {name} if steps[one] == 1)
        return single[0] if is_new and single else ""

    def forget(self, process: int) -> None:
        """Forget the steps of a process."""
        self._last.pop(process, None)
        self._steps.pop(process, None)
