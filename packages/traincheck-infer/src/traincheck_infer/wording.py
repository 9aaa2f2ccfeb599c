"""Makes invariants of accepted candidates: asks the relation for words and rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_infer.saying_less import Known
from traincheck_relations.conditions.preconditions import in_words
from traincheck_relations.planning import requirements_for
from traincheck_relations.registry import not_checkable
from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import PluginError
from traincheck_trace_schema.invariant_file import invariant_id
from traincheck_trace_schema.invariants import Invariant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traincheck_infer.candidates import Judgement
    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import Params

_UNKNOWN_LIKELIHOOD = 0.5  # of a relation that does not say


def invariants_of(
    relation: Relation, judgements: Iterable[Judgement], tracker: str | None
) -> Iterator[Known]:
    """Yield the invariants of the candidates of a relation that were accepted.

    Raises:
        Exception: Whatever the relation raises that can't handle what it proposed itself.
    """
    for one in judgements:
        if not one.preconditions:
            continue
        params, total = one.candidate.params, one.candidate.total
        claim = relation.describe(params)
        likelihood = _likelihood(relation, params)
        for group in one.preconditions:
            precondition = {relation.group: group}
            condition = in_words(group)
            invariant = Invariant(
                id=invariant_id(relation.name, params, precondition),
                text_description=f"{claim} {condition}" if condition else claim,
                relation=relation.name,
                params=params,
                precondition=precondition,
                num_positive_examples=total.num_positive,
                num_negative_examples=total.num_negative,
                runs=tuple(sorted(one.candidate.held)),
                tracker=tracker,
                likelihood=likelihood,
                reference=one.candidate.reference(group),
            )
            _insist_on_checkable(invariant, relation)
            yield Known(invariant, (total.held.occasions, total.broken.occasions))


def without_own_implied(relation: Relation, known: list[Known]) -> list[Known]:
    """Let a relation drop those of its invariants that its others imply.

    Raises:
        Exception: Whatever the relation raises, or that it returned what it was not given.
    """
    drop = getattr(relation, "without_implied", None)
    if drop is None:
        return known
    ordered = [one.invariant for one in known]
    left = {one.id for one in drop(ordered)}
    if unknown := left - {one.id for one in ordered}:
        raise PluginError(f"without_implied returned {min(unknown)!r}, which it was not given")
    return [one for one in known if one.invariant.id in left]


def _likelihood(relation: Relation, params: Params) -> float:
    rank = getattr(relation, "likelihood", None)
    value = _UNKNOWN_LIKELIHOOD if rank is None else float(rank(params))
    if not 0 <= value <= 1:
        raise PluginError(f"its likelihood must be from 0 to 1, got {value!r}")
    return value


def _insist_on_checkable(invariant: Invariant, relation: Relation) -> None:
    """Find out now what would fail when a run is recorded or checked."""
    dumps(unstructure(invariant))
    list(requirements_for(invariant, relation))
    for reason in not_checkable([invariant], {relation.name: relation}).values():
        raise PluginError(reason)
