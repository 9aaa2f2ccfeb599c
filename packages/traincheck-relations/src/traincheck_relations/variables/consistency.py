"""`ConsistencyRelation`: two variables' attributes stay equal, across ranks or across tied names.

Across ranks: a variable that is replicated (same name and shape, not sharded) is compared between
the ranks of a group, at the n-th occasion of a window. So is a buffer that a type of module has,
such as the statistics of `torch.nn.SyncBatchNorm`, when a step ends. Across ties: two names that
stood for one parameter still show equal data when a step ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeGuard

import attrs

from traincheck_relations.api import (
    Event,
    EventMonitor,
    Example,
    Gap,
    Interests,
    Monitor,
    Proposer,
    Requirements,
)
from traincheck_relations.conditions.properties import run_properties
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.value import content
from traincheck_relations.variables.change import is_told
from traincheck_relations.variables.consistency_candidates import ConsistencyProposer
from traincheck_relations.variables.model_parts import ModelParts
from traincheck_relations.variables.observed import is_of_parameters, looked_at
from traincheck_relations.variables.rank_comparison import Sight, compare_ranks, is_whole
from traincheck_trace_schema.invariants import (
    OccasionParam,
    Params,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traincheck_relations.api import VariableState
    from traincheck_trace_schema.window import Window

_Claims: TypeAlias = "defaultdict[tuple[str | None, str], list[tuple[int, str, str]]]"
_Sights: TypeAlias = "defaultdict[Window, defaultdict[_Occasion, dict[int, Sight]]]"

_PARAMETER = "torch.nn.Parameter"


class ConsistencyRelation:
    """An attribute of a variable is equal on all ranks, or under both of its names."""

    name: ClassVar[str] = "ConsistencyRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ConsistencyProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        first, _, occasion, _ = _parts(params)
        functions = frozenset(() if occasion.function is None else (occasion.function,))
        is_before = occasion.phase == "begin"
        if _is_of_buffer(first, occasion):
            # Modules tell by which type of them a buffer is had.
            return Requirements(
                variables={"buffer": frozenset(("data",)), "module": frozenset(("training",))}
            )
        return Requirements(
            functions={name: frozenset() for name in functions},
            # The data tells the shape, and if a variable is a replica.
            variables={"parameter": frozenset((first.attr_name, "data"))},
            observe_before=functions if is_before else frozenset(),
            observe_after=frozenset() if is_before else functions,
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return ConsistencyMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        first, second, occasion, scope = _parts(params)
        when = _when(occasion)
        if isinstance(first, VarNameParam) and isinstance(second, VarNameParam):
            return (
                f"{first.var_name} and {second.var_name} are tied: "
                f"their {first.attr_name} is equal {when}"
            )
        if _is_of_buffer(first, occasion):
            return (
                f"The {first.attr_name} of each {first.var_type} is equal "
                f"on all ranks of the {scope.group} {when}"
            )
        return (
            f"The {first.attr_name} of a replicated parameter is equal "
            f"on all ranks of the {scope.group} {when}"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        first, _, occasion, scope = _parts(params)
        if scope.scope == "ties":
            return (
                "what took the tied weights apart: a resize or an assignment under one of the "
                "names, a conversion or a move of the model, loading a checkpoint, wrapping; "
                "whether they are tied again after it"
            )
        if _is_of_buffer(first, occasion):
            return (
                "whether the modules were converted to synchronise (SyncBatchNorm), and buffers "
                "are broadcast (broadcast_buffers); whether some ranks run the model more often, "
                "as in an evaluation on one of them"
            )
        if first.attr_name == "grad":
            return (
                "whether gradients are reduced at all: the forward pass has to go through the "
                "wrapped model (DDP), not the one inside it; whether no_sync leaves this step "
                "out; whether parameters were replaced, converted or moved after wrapping; whether "
                "something changes gradients on one rank only: a hook, clipping, a transfer that "
                "loses data"
            )
        return (
            "whether all ranks began with the same weights (seed, checkpoint, the broadcast at "
            "wrapping); whether gradients are equal before the optimizer's step, and if so, "
            "whether clipping, the learning rate or the optimizer's state differ between ranks; "
            "whether something writes to the weights on one rank only"
        )


@attrs.frozen
class _Occasion:
    """The n-th observation of a function, or step's end, in a window; the same for all ranks."""

    restart: int
    function: str | None
    phase: str
    ordinal: int
    role: str


class ConsistencyMonitor(EventMonitor):
    """Compares ranks when they have all left a window, and tied names at once."""

    def __init__(self, params: Sequence[Params]) -> None:
        self._across_ranks: _Claims = defaultdict(list)
        self._ties: list[tuple[int, str, str, str]] = []
        self._buffers: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        self._model = ModelParts()
        functions = set()
        for index, param in enumerate(params):
            first, second, occasion, scope = _parts(param)
            if occasion.function is not None:
                functions.add(occasion.function)
            if isinstance(first, VarNameParam) and isinstance(second, VarNameParam):
                self._ties.append((index, first.var_name, second.var_name, first.attr_name))
            elif _is_of_buffer(first, occasion):
                self._buffers[first.var_type, first.attr_name].append((index, scope.group))
            else:
                key = (occasion.function, occasion.phase)
                self._across_ranks[key].append((index, first.attr_name, scope.group))
        kinds = ("observe", "var") if self._buffers else ("observe",)
        self.interests = Interests(kinds=frozenset(kinds), functions=frozenset(functions))
        self._counts: Counter[tuple[int, Window, str, str | None, str]] = Counter()
        self._sights: _Sights = defaultdict(lambda: defaultdict(dict))
        self._blind: set[tuple[int, Window]] = set()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        if event.kind == "var":
            self._model.on_var(event)
            return ()
        phase = str(event.record["phase"])
        if not is_of_parameters(event):
            is_shared = event.is_main and len(event.run.world()["world"]) > 1
            if is_shared and phase == "step_end" and "buffer" in event.record["roles"]:
                self._see(event, None, phase, "buffer")
            return ()
        if event.is_main and len(event.run.world()["world"]) > 1:
            functions = (None,) if event.call is None else tuple(event.call.names)
            for function in functions:
                if (function, phase) in self._across_ranks:
                    self._see(event, function, phase, "parameter")
        return self._compare_ties(event) if phase == "step_end" else ()

    def on_window_end(self, window: Window) -> Iterator[Example]:
        """Compare what the ranks showed in this window."""
        for occasion, by_rank in self._sights.pop(window, {}).items():
            if occasion.role == "buffer":
                yield from self._compare_buffers(by_rank)
                continue
            for index, attribute, group in self._across_ranks[occasion.function, occasion.phase]:
                looking = {
                    rank: sight
                    for rank, sight in by_rank.items()
                    if attribute in sight.event.record["attributes"]
                }
                yield from compare_ranks(index, attribute, group, looking)
        for key in [key for key in self._counts if key[1] <= window]:
            del self._counts[key]
        self._blind = {key for key in self._blind if key[1] > window}

    def on_gap(self, gap: Gap) -> None:
        """Leave a rank out of the window of a gap: its occasions there can't be counted."""
        self._blind.add((gap.process, gap.window))
        for by_rank in self._sights.get(gap.window, {}).values():
            by_rank.pop(gap.rank, None)

    def _see(self, event: Event, function: str | None, phase: str, role: str) -> None:
        if event.is_late or (event.process, event.window) in self._blind:
            return
        key = (event.process, event.window, role, function, phase)
        self._counts[key] += 1
        occasion = _Occasion(event.restart, function, phase, self._counts[key], role)
        states = {
            state.names[0]: state
            for state in looked_at(event, role).values()
            if is_whole(state) and (role != "buffer" or self._key(event, state) in self._buffers)
        }
        self._sights[event.window][occasion][event.rank] = Sight(event=event, states=states)

    def _key(self, event: Event, buffer: VariableState) -> tuple[str, str] | None:
        owner = self._model.owner(event, buffer)
        return None if owner is None else (owner.type, buffer.names[0].rpartition(".")[2])

    def _compare_buffers(self, by_rank: Mapping[int, Sight]) -> Iterator[Example]:
        for key, claims in self._buffers.items():
            sights = {
                rank: attrs.evolve(
                    sight,
                    states={
                        name: state
                        for name, state in sight.states.items()
                        if self._key(sight.event, state) == key
                    },
                )
                for rank, sight in by_rank.items()
            }
            for index, group in claims:
                yield from compare_ranks(index, "data", group, sights)

    def _compare_ties(self, event: Event) -> Iterator[Example]:
        if not self._ties:
            return
        by_name = {name: state for state in looked_at(event).values() for name in state.names}
        for index, first, second, attribute in self._ties:
            one, other = by_name.get(first), by_name.get(second)
            if attribute not in event.record["attributes"] or one is None or other is None:
                continue
            if not is_told(one, other, attribute):
                continue
            held = one is other or content(one, attribute) == content(other, attribute)
            yield Example(
                param=index,
                held=held,
                context=run_properties(event),
                at=position_of(event, event.call, second),
                evidence=partial(records_of, event),
                happened=""
                if held
                else f"{first} and {second} are no longer one parameter: their {attribute} differs",
            )


def _is_of_buffer(
    variable: VarTypeParam | VarNameParam, occasion: OccasionParam
) -> TypeGuard[VarTypeParam]:
    """Whether a claim is about a buffer, which is named as an attribute of a type of module."""
    return (
        isinstance(variable, VarTypeParam)
        and variable.var_type != _PARAMETER
        and occasion.function is None
    )


def _parts(
    params: Params,
) -> tuple[VarTypeParam | VarNameParam, VarTypeParam | VarNameParam, OccasionParam, ScopeParam]:
    first, second, occasion, scope = params
    if (
        not isinstance(first, VarTypeParam | VarNameParam)
        or not isinstance(second, VarTypeParam | VarNameParam)
        or not isinstance(occasion, OccasionParam)
        or not isinstance(scope, ScopeParam)
    ):
        msg = (
            "ConsistencyRelation takes two variables, an OccasionParam and a ScopeParam, "
            f"got {params!r}"
        )
        raise TypeError(msg)
    return first, second, occasion, scope


def _when(occasion: OccasionParam) -> str:
    if occasion.function is None:
        return "when a step ends"
    return f"{'before' if occasion.phase == 'begin' else 'after'} {occasion.function}"
