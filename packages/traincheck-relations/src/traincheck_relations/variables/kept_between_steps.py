"""`KeptBetweenStepsRelation`: only an optimizer's step changes the parameters that it holds.

Weights that are put back, loaded, initialised again or overwritten between two steps lose what was
learnt, and nothing tells of it. Some programs write to them rightly: they clip weights, or keep
them on a sphere. So the claim is made of models whose parameters have the same names, where the
reference did no such thing.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import (
    context_of_variable,
    optimizer_name,
    run_properties,
)
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.of_model import ClaimOfModels
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import has_changed
from traincheck_relations.variables.change import is_told
from traincheck_relations.variables.observed import is_of_parameters, looked_at
from traincheck_trace_schema.invariants import OccasionParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Event, Gap, Monitor, Proposer, VariableState

_CLAIM = ClaimOfModels(
    "KeptBetweenStepsRelation",
    (
        VarTypeParam(var_type="torch.nn.Parameter", attr_name="data", post_value="unchanged"),
        OccasionParam(function=OPTIMIZER_STEP, phase="begin"),
    ),
)
_INTERESTS = Interests(
    kinds=frozenset(("observe", "call_error")), functions=frozenset((OPTIMIZER_STEP,))
)


class KeptBetweenStepsRelation:
    """Between two steps of an optimizer, the parameters that it holds stay as they are."""

    name: ClassVar[str] = "KeptBetweenStepsRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return KeptBetweenStepsProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _CLAIM.model(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": frozenset(("data",))},
            observe=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return KeptBetweenStepsMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        _CLAIM.model(params)
        return f"Nothing but {OPTIMIZER_STEP} changes the parameters that an optimizer trains"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _CLAIM.model(params)
        return (
            "what writes to the parameters between two steps: load_state_dict, copy_ or .data in "
            "the loop, an average or a backup that is swapped in and not out again, an "
            "initialisation that is called anew"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _CLAIM.model(params)
        return 0.7


class KeptBetweenStepsProposer:
    """Proposes the claim of each model of which the parameters could be compared."""

    interests = _INTERESTS

    def __init__(self) -> None:
        self._kept = Kept()
        self._models: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        pairs = self._kept.on_event(event)
        if pairs and (model := event.run.model()) is not None:
            self._models.add(model)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        return [_CLAIM.of(model) for model in sorted(self._models)]


class KeptBetweenStepsMonitor(EventMonitor):
    """Compares parameters with how the last step of their optimizer left them."""

    interests = _INTERESTS

    def __init__(self, params: Sequence[Params]) -> None:
        self._claims = _CLAIM.places(params)
        self._kept = Kept()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        pairs = self._kept.on_event(event)
        claims = self._claims.get(event.run.model() or "", ()) if pairs else ()
        return [example for index in claims for example in _examples(index, event, pairs)]

    def on_gap(self, gap: Gap) -> None:
        """Forget how parameters were left: what came since is not told."""
        self._kept.forget(gap.process)


class Kept:
    """How the last step of an optimizer left each parameter that it holds."""

    def __init__(self) -> None:
        self._left: defaultdict[int, dict[int, VariableState]] = defaultdict(dict)  # by process

    def on_event(self, event: Event) -> Sequence[tuple[VariableState, VariableState]]:
        """Take an event of `_INTERESTS`; return parameters as they were left, and as they are.

        That is told where the next step begins, and where a training step ends: what is swapped
        for an evaluation, and back again, is as it was.
        """
        if not event.is_main:
            return ()
        call = event.call
        if event.kind == "call_error":
            self.forget(event.process)
        elif is_of_parameters(event) and "data" in event.record["attributes"]:
            holder = None if call is None else optimizer_name(call)
            if event.record["phase"] != "end":
                return self._compared(event, holder)
            states = looked_at(event).values()
            left = ((one.id, one) for one in states if holder in one.holders)
            self._left[event.process].update(left)
        return ()

    def forget(self, process: int) -> None:
        """Forget how the parameters of a process were left."""
        self._left.pop(process, None)

    def _compared(
        self, event: Event, holder: str | None
    ) -> list[tuple[VariableState, VariableState]]:
        left = self._left[event.process]
        variables = event.run.variables()
        pairs = []
        for id_, before in list(left.items()):
            after = variables.get(id_)
            if after is None:
                del left[id_]
            elif holder is None or holder in after.holders:
                if is_told(before, after, "data"):
                    pairs.append((before, after))
                left[id_] = after  # what was told once is not told again
        return pairs


def _examples(
    index: int, event: Event, pairs: Iterable[tuple[VariableState, VariableState]]
) -> Iterator[Example]:
    about_run = run_properties(event)
    evidence = partial(records_of, event)
    for before, after in pairs:
        held = not has_changed(before, after, "data")
        yield Example(
            param=index,
            held=held,
            context=partial(context_of_variable, about_run, before, "var.grad"),
            at=partial(position_of, event, event.call, before.names[0]),
            evidence=evidence,
            happened=""
            if held
            else f"{before.names[0]} is not as its optimizer's last step left it",
        )
