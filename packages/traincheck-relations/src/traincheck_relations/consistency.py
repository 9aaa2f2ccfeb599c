"""`ConsistencyRelation`: two variables' attributes stay equal, across ranks or across tied names.

Across ranks: a variable that is replicated (same name and shape, not sharded) is compared between
the ranks of a group, at the n-th occasion of a window in all of them. Across ties: two names that
stood for one parameter still show equal data when a step ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import attrs

from traincheck_relations.api import (
    Context,
    Event,
    Example,
    Gap,
    Interests,
    Monitor,
    Proposer,
    RecordRef,
    Requirements,
    VariableState,
)
from traincheck_relations.observed import ObservedCall, ObservedCalls, has_changed, is_comparable
from traincheck_relations.occasion import position_of
from traincheck_relations.properties import run_properties, variable_properties
from traincheck_trace_schema.invariants import (
    OccasionParam,
    Params,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from traincheck_trace_schema.values import Json
    from traincheck_trace_schema.window import Window

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
        functions = () if occasion.function is None else (occasion.function,)
        return Requirements(
            functions={name: frozenset() for name in functions},
            variables={"parameter": frozenset((first.attr_name,))},
            observe=frozenset(functions),
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
        is_shared = len(event.run.world()["world"]) > 1
        if event.kind == "var":
            names = event.record["names"]
            self._ties.update(combinations(sorted(names), 2))
            changed = event.record["event"] == "changed" and "data" in event.record["attributes"]
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
                is_comparable(before, attribute)
                and is_comparable(after, attribute)
                and has_changed(before, after, attribute)
                for before, after in observed.pairs()
            ):
                continue
            for name in observed.call.documented:
                self._occasions.add((name, "end", attribute))
                if attribute == "data" and "grad" in observed.attributes:
                    self._occasions.add((name, "begin", "grad"))


@attrs.frozen(kw_only=True)
class _Sight:
    """What one rank showed at one occasion."""

    event: Event
    states: Mapping[str, VariableState]  # by first name


class ConsistencyMonitor:
    """Compares ranks when they have all left a window, and tied names at once."""

    def __init__(self, params: Sequence[Params]) -> None:
        self._across_ranks: dict[tuple[str | None, str], list[tuple[int, str, str]]] = defaultdict(
            list
        )
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
        self._occasions: Counter[tuple[int, Window, str | None, str]] = Counter()
        self._sights: dict[Window, dict[tuple[str | None, str, int], dict[int, _Sight]]] = (
            defaultdict(lambda: defaultdict(dict))
        )

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        phase = str(event.record["phase"])
        functions = (None,) if event.call is None else tuple(event.call.names)
        for function in functions:
            if (function, phase) in self._across_ranks:
                self._see(event, function, phase)
        return self._compare_ties(event) if phase == "step_end" else ()

    def on_window_end(self, window: Window) -> Iterator[Example]:
        """Compare what the ranks showed in this window."""
        for (function, phase, _), by_rank in self._sights.pop(window, {}).items():
            for index, attribute, group in self._across_ranks[function, phase]:
                yield from _compare_ranks(index, attribute, group, by_rank)
        for key in [key for key in self._occasions if key[1] <= window]:
            del self._occasions[key]

    def on_gap(self, gap: Gap) -> None:
        """Forget what a rank showed in the window of the gap: its occasions can't be counted."""
        for by_rank in self._sights.get(gap.window, {}).values():
            by_rank.pop(gap.rank, None)

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        """Do nothing: every window has ended."""
        del complete
        return ()

    def _see(self, event: Event, function: str | None, phase: str) -> None:
        key = (event.process, event.window, function, phase)
        self._occasions[key] += 1
        states = {state.names[0]: state for state in event.run.variables().values()}
        occasion = (function, phase, self._occasions[key])
        self._sights[event.window][occasion][event.rank] = _Sight(event=event, states=states)

    def _compare_ties(self, event: Event) -> Iterator[Example]:
        if not self._ties:
            return
        by_name = {name: state for state in event.run.variables().values() for name in state.names}
        for index, first, second, attribute in self._ties:
            one, other = by_name.get(first), by_name.get(second)
            if one is None or other is None or not _are_comparable((one, other), attribute):
                continue
            held = one is other or _content(one, attribute) == _content(other, attribute)
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


def _compare_ranks(
    index: int, attribute: str, group: str, by_rank: Mapping[int, _Sight]
) -> Iterator[Example]:
    """Compare each replicated variable between the ranks of a group, if all were there."""
    if not by_rank:
        return
    first_rank = min(by_rank)
    reference = by_rank[first_rank]
    ranks = reference.event.run.world().get(group, ())
    if len(ranks) < 2 or any(rank not in by_rank for rank in ranks):  # noqa: PLR2004 - a pair
        return
    for name, state in reference.states.items():
        states = {rank: by_rank[rank].states.get(name) for rank in ranks}
        present = {rank: one for rank, one in states.items() if one is not None}
        if len(present) < len(ranks) or not _are_replicas(present.values(), attribute):
            continue
        contents = {rank: _content(one, attribute) for rank, one in present.items()}
        if all(content is None for content in contents.values()):
            continue
        differing = [rank for rank in ranks if contents[rank] != contents[first_rank]]
        event = reference.event
        yield Example(
            param=index,
            held=not differing,
            context=_context(event, state),
            at=position_of(event, event.call, name),
            evidence=tuple(_ref(by_rank[rank], name) for rank in (first_rank, *differing[:1]))
            if differing
            else (),
            happened=_differs(name, attribute, contents, first_rank, differing)
            if differing
            else "",
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


def _context(event: Event, state: VariableState) -> Context:
    """Return the facts that are the same on every rank; the gradient may be what is compared."""
    facts = variable_properties(state)
    facts.pop("var.grad", None)
    return facts | run_properties(event)


def _content(state: VariableState, attribute: str) -> Json:
    """Return what an attribute is compared by: a tensor's digest, or the value."""
    value = state.attributes[attribute]
    tensor = value.get("tensor") if isinstance(value, Mapping) else None
    return tensor.get("digest") if isinstance(tensor, Mapping) else value


def _are_comparable(states: Iterable[VariableState], attribute: str) -> bool:
    return all(is_comparable(state, attribute) for state in states)


def _are_replicas(states: Iterable[VariableState], attribute: str) -> bool:
    """Whether all of them hold the whole of one variable."""
    shapes = set()
    for state in states:
        data = state.attributes.get("data")
        tensor = data.get("tensor") if isinstance(data, Mapping) else None
        if not isinstance(tensor, Mapping) or tensor.get("placements"):
            return False
        if state.attributes.get("tensor_model_parallel"):
            return False
        if not is_comparable(state, attribute):
            return False
        shapes.add(str(tensor.get("shape")))
    return len(shapes) == 1


def _ref(sight: _Sight, name: str) -> RecordRef:
    """Refer to the observation, with the state of the variable that it showed."""
    state = sight.states[name]
    record = {**sight.event.record, "names": state.names, "state": state.attributes}
    return RecordRef(sight.event.shard, sight.event.rank, record)


def _differs(
    name: str,
    attribute: str,
    contents: Mapping[int, Json],
    first_rank: int,
    differing: Sequence[int],
) -> str:
    others = ", ".join(map(str, differing))
    return (
        f"{name}.{attribute} on rank {others} ({contents[differing[0]]}) "
        f"differs from rank {first_rank} ({contents[first_rank]})"
    )
