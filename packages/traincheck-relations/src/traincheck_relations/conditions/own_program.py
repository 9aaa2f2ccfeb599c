"""Claims that name what a program defines itself hold of that program only.

`__main__.Net.forward` is another function in another script. So such a claim has in its
precondition which model it was learnt from: `run.model`, a digest of the names of all parameters.
About torch, claims never depend on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_relations.conditions.properties import MODEL
from traincheck_relations.conditions.separation import MAX_VALUES, separate
from traincheck_trace_schema.invariants import (
    Clause,
    ConditionGroup,
    Conjunction,
    Params,
    VarTypeParam,
    function_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_relations.api import Context

_TORCH = "torch"


def names_own(params: Params) -> bool:
    """Whether a claim names a function, or a type, that torch does not define.

    >>> from traincheck_trace_schema.invariants import APIParam
    >>> names_own((APIParam(api_full_name="__main__.Net.forward"),))
    True
    """
    named = [function_of(param) for param in params]
    named += [param.var_type for param in params if isinstance(param, VarTypeParam)]
    return any(name is not None and not is_of_torch(name) for name in named)


def preconditions_of(
    params: Params,
    positives: Sequence[Context],
    negatives: Sequence[Context],
    *,
    incidental_separates: bool = True,
) -> list[ConditionGroup]:
    """Return what `separate` does; for a claim about the program itself, of the same model only.

    Where it holds of some models and not of others, it is claimed of those.
    """
    bare = list(map(_without_model, positives)), list(map(_without_model, negatives))
    found = separate(*bare, incidental_separates=incidental_separates)
    models = _models(positives)
    if not models or not (names_own(params) or any(map(_has_own_type, found))):
        return found
    if not found:
        models -= _models(negatives)
        always = [each for each in positives if MODEL in each and each[MODEL] in models]
        found = separate(list(map(_without_model, always)), [])
    if len(models) > MAX_VALUES:
        return []
    clause = Clause(type="constant", prop_name=MODEL, values=tuple(sorted(models)))
    return [
        attrs.evolve(group, preconditions=tuple(_with(clause, group.preconditions)))
        for group in found
        if not group.inverted  # what is negated as a whole can't be narrowed down
    ]


def _with(clause: Clause, conjunctions: Iterable[Conjunction]) -> Iterable[Conjunction]:
    for each in conjunctions:
        others = () if each.clauses == "Unconditional" else each.clauses
        yield Conjunction(clauses=(*others, clause))


def _has_own_type(group: ConditionGroup) -> bool:
    """Whether a condition is that the module has a type that torch does not define."""
    return any(
        clause.prop_name == "call.module.type" and not is_of_torch(str(value))
        for each in group.preconditions
        if each.clauses != "Unconditional"
        for clause in each.clauses
        for value in clause.values
    )


def is_of_torch(name: str) -> bool:
    """Whether a function, or a type, is one that torch defines."""
    return name.partition(".")[0] == _TORCH


def _models(contexts: Iterable[Context]) -> set[str]:
    return {str(each[MODEL]) for each in contexts if MODEL in each}


def _without_model(context: Context) -> Context:
    return {name: value for name, value in context.items() if name != MODEL}
