"""`ConsistencyRelation`: two variables' attributes stay equal, across ranks or across tied names.

Across ranks: a variable that is replicated (same name and shape, not sharded) is compared between
the ranks of a group, at the n-th occasion of a window. Across ties: two names that stood for one
parameter still show equal data when a step ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import attrs

from traincheck_relations.api import (
    Event,
    Example,
    Gap,
    Interests,
    Monitor,
    Proposer,
    Requirements,
)
from traincheck_relations.change import is_told
from traincheck_relations.observed import ObservedCall, ObservedCalls, is_of_parameters, looked_at
from traincheck_relations.occasion import position_of
from traincheck_relations.properties import run_properties
from traincheck_relations.rank_comparison import Sight, compare_ranks, is_whole
from traincheck_relations.value import content, has_changed
from traincheck_trace_schema.invariants import (
    OccasionParam,
    Params,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_trace_schema.window import Window

_Claims: TypeAlias = "defaultdict[tuple[str | None, str], list[tuple[int, str, str]]]"
_Sights: TypeAlias = "defaultdict[Window, defaultdict[_Occasion, dict[int, Sight]]]"

_COMPARED = ("data", "grad")
_STEP_END = OccasionParam(phase="step_end")


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
        return (
            f"The {first.attr_name} of a replicated parameter is equal "
            f"on all ranks of the {scope.group} {when}"
        )


class ConsistencyProposer:
    """Proposes to compare an attribute where it has just changed, or is about to be used.

    Data is compared at a step's end too: not every optimizer is one of torch's.
    """

    interests = Interests(kinds=frozenset(("observe", "var")))

    def __init__(self) -> None:
        self._observed = ObservedCalls()
        self._occasions: set[tuple[str, str, str]] = set()
        self._data_changes = False
        self._ties: set[tuple[str, str]] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if not is_of_parameters(event):
            return
        is_shared = len(event.run.world()["world"]) > 1
        if event.kind == "var":
            first, *others = event.record["names"]
            self._ties.update((first, other) for other in others)
            attributes = event.record.get("attributes", ())
            changed = event.record["event"] == "changed" and "data" in attributes
            self._data_changes |= is_shared and changed
        elif (observed := self._observed.on_observe(event)) is not None and is_shared:
            self._take(observed)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        for function, phase, attribute in sorted(self._occasions):
            var = VarTypeParam(var_type="torch.nn.Parameter", attr_name=attribute)
            occasion = OccasionParam(function=function, phase="end" if phase == "end" else "begin")
            yield var, var, occasion, ScopeParam(scope="ranks")
        if self._data_changes:
            var = VarTypeParam(var_type="torch.nn.Parameter", attr_name="data")
            yield var, var, _STEP_END, ScopeParam(scope="ranks")
        for one, other in sorted(self._ties):
            names = (VarNameParam(var_name=name, attr_name="data") for name in (one, other))
            yield *names, _STEP_END, ScopeParam(scope="ties")

    def _take(self, observed: ObservedCall) -> None:
        for attribute in observed.attributes.intersection(_COMPARED):
            if not any(
                is_told(before, after, attribute) and has_changed(before, after, attribute)
                for before, after in observed.pairs()
            ):
                continue
            for name in observed.call.documented:
                self._occasions.add((name, "end", attribute))
                if attribute == "data" and "grad" in observed.attributes:
                    self._occasions.add((name, "begin", "grad"))


@attrs.frozen
class _Occasion:
    """The n-th observation of a function, or step's end, in a window; the same for all ranks."""

    restart: int
    function: str | None
    phase: str
    ordinal: int


class ConsistencyMonitor:
    """Compares ranks when they have all left a window, and tied names at once."""

    def __init__(self, params: Sequence[Params]) -> None:
        self._across_ranks: _Claims = defaultdict(list)
        self._ties: list[tuple[int, str, str, str]] = []
        functions = set()
        for index, param in enumerate(params):
            first, second, occasion, scope = _parts(param)
            if occasion.function is not None:
                functions.add(occasion.function)
            if isinstance(first, VarNameParam) and isinstance(second, VarNameParam):
                self._ties.append((index, first.var_name, second.var_name, first.attr_name))
            else:
                key = (occasion.function, occasion.phase)
                self._across_ranks[key].append((index, first.attr_name, scope.group))
        self.interests = Interests(kinds=frozenset(("observe",)), functions=frozenset(functions))
        self._counts: Counter[tuple[int, Window, str | None, str]] = Counter()
        self._sights: _Sights = defaultdict(lambda: defaultdict(dict))
        self._blind: set[tuple[int, Window]] = set()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        if not is_of_parameters(event):
            return ()
        phase = str(event.record["phase"])
        if event.is_main and len(event.run.world()["world"]) > 1:
            functions = (None,) if event.call is None else tuple(event.call.names)
            for function in functions:
                if (function, phase) in self._across_ranks:
                    self._see(event, function, phase)
        return self._compare_ties(event) if phase == "step_end" else ()

    def on_window_end(self, window: Window) -> Iterator[Example]:
        """Compare what the ranks showed in this window."""
        for occasion, by_rank in self._sights.pop(window, {}).items():
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

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        """Do nothing: every window has ended."""
        del complete
        return ()

    def _see(self, event: Event, function: str | None, phase: str) -> None:
        if (event.process, event.window) in self._blind:
            return
        key = (event.process, event.window, function, phase)
        self._counts[key] += 1
        occasion = _Occasion(event.restart, function, phase, self._counts[key])
        states = {state.names[0]: state for state in looked_at(event).values() if is_whole(state)}
        self._sights[event.window][occasion][event.rank] = Sight(event=event, states=states)

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
                evidence=() if held else (event.ref(),),
                happened=""
                if held
                else f"{first} and {second} are no longer one parameter: their {attribute} differs",
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
