"""Leaves out what says nothing new: what was learnt about a function and also about its base."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.invariant_file import invariant_id
from traincheck_trace_schema.invariants import APIParam, OccasionParam, Param, Params

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from traincheck_trace_schema.invariants import Invariant


def without_implied(
    invariants: Iterable[Invariant], bases: Mapping[str, tuple[str, ...]]
) -> list[Invariant]:
    """Drop an invariant if the same is known of a method that one of its functions overrides.

    "`SGD.step` changes every parameter" follows from the same of `Optimizer.step`, which speaks
    about other optimizers too.
    """
    known = list(invariants)
    told = {each.id for each in known}
    return [
        each
        for each in known
        if not any(
            invariant_id(each.relation, params, each.precondition) in told
            for params in _generalised(each.params, bases)
        )
    ]


def _generalised(params: Params, bases: Mapping[str, tuple[str, ...]]) -> Iterator[Params]:
    """Yield the params with one function or more replaced by a base of it."""
    choices = [(param, *_bases_of(param, bases)) for param in params]
    every = product(*choices)
    next(every)  # the params themselves
    yield from every


def _bases_of(param: Param, bases: Mapping[str, tuple[str, ...]]) -> Iterator[Param]:
    if isinstance(param, APIParam):
        for base in bases.get(param.api_full_name, ()):
            yield attrs.evolve(param, api_full_name=base)
    elif isinstance(param, OccasionParam) and param.function is not None:
        for base in bases.get(param.function, ()):
            yield attrs.evolve(param, function=base)
