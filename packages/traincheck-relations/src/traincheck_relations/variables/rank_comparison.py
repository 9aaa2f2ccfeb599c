"""Compares what the ranks showed of their variables at one occasion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.api import Context, Event, Example, RecordRef, VariableState
from traincheck_relations.conditions.properties import run_properties, variable_properties
from traincheck_relations.occasion import position_of
from traincheck_relations.value import content, is_comparable, payload

if TYPE_CHECKING:
    from traincheck_trace_schema.values import Json

_A_PAIR = 2


@attrs.frozen(kw_only=True)
class Sight:
    """What one rank showed at one occasion: its replicated variables, by first name."""

    event: Event
    states: Mapping[str, VariableState]


def compare_ranks(
    index: int, attribute: str, group: str, by_rank: Mapping[int, Sight]
) -> Iterator[Example]:
    """Compare each replicated variable between the ranks of a group that were at an occasion.

    Each rank names its own group of a kind: of some kinds, as `data_parallel`, there are several.
    """
    named = (by_rank[rank].event.run.world().get(group, ()) for rank in sorted(by_rank))
    for members in dict.fromkeys(named):
        ranks = [rank for rank in members if rank in by_rank]
        if len(ranks) >= _A_PAIR:
            yield from _compare(index, attribute, ranks, by_rank)


def _compare(
    index: int, attribute: str, ranks: Sequence[int], by_rank: Mapping[int, Sight]
) -> Iterator[Example]:
    for name, state in by_rank[ranks[0]].states.items():
        states = {rank: by_rank[rank].states.get(name) for rank in ranks}
        present = {rank: one for rank, one in states.items() if one is not None}
        if len(present) < len(ranks) or not _are_replicas(present.values(), attribute):
            continue
        contents = {rank: content(one, attribute) for rank, one in present.items()}
        if any(value is not None for value in contents.values()):
            yield _example(index, name, attribute, contents, by_rank, state)


def _example(  # noqa: PLR0913, PLR0917  one comparison is all of these
    index: int,
    name: str,
    attribute: str,
    contents: Mapping[int, Json],
    by_rank: Mapping[int, Sight],
    state: VariableState,
) -> Example:
    """Judge one variable; what most ranks have is what the others differ from."""
    usual, _ = Counter(map(str, contents.values())).most_common(1)[0]
    differing = [rank for rank, value in contents.items() if str(value) != usual]
    like = next(rank for rank, value in contents.items() if str(value) == usual)
    other = (differing or [rank for rank in contents if rank != like])[0]
    event = by_rank[other if differing else like].event
    return Example(
        param=index,
        held=not differing,
        context=_context(event, state),
        at=position_of(event, event.call, name),
        evidence=partial(_refs, by_rank, (like, other), name),
        happened=_differs(name, attribute, contents, like, differing) if differing else "",
    )


def _context(event: Event, state: VariableState) -> Context:
    """Return the facts that are the same on every rank; the gradient may be what is compared.

    Nor are dimensions and dtype among them: that they tell replicas from others is an accident.
    """
    facts = variable_properties(state)
    for name in ("var.grad", "var.ndim", "var.dtype"):
        facts.pop(name, None)
    return facts | run_properties(event)


def is_whole(state: VariableState) -> bool:
    """Whether a variable is not a part of a larger one that is spread over ranks."""
    tensor = payload(state.attributes.get("data"), "tensor")
    return not tensor.get("placements") and not state.attributes.get("tensor_model_parallel")


def _are_replicas(states: Collection[VariableState], attribute: str) -> bool:
    """Whether variables of one name have one shape, and an attribute that can be compared."""
    shapes = {str(payload(state.attributes.get("data"), "tensor").get("shape")) for state in states}
    return len(shapes) == 1 and all(is_comparable(state, attribute) for state in states)


def _refs(by_rank: Mapping[int, Sight], ranks: Sequence[int], name: str) -> tuple[RecordRef, ...]:
    return tuple(_ref(by_rank[rank], name) for rank in ranks)


def _ref(sight: Sight, name: str) -> RecordRef:
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
    alike = [rank for rank in contents if rank not in differing]
    than = f"ranks {', '.join(map(str, alike))}" if len(alike) > 1 else f"rank {first_rank}"
    return f"{name}.{attribute} on rank {others} differs from that on {than}"
