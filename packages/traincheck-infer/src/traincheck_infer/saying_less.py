"""Leaves out what another invariant says already, by what it names and when it applies.

An invariant is left out if there is one of the same relation that says the same, or more, wherever
it applies: with the same params or more general ones, and a precondition that is not stronger.
More general is

- a base method, instead of one that overrides it;
- each variable of a type, instead of one by its name;
- and, where both have exactly the same occasions: the function in which alone another is called, or
  the more general of two base methods of one function. If the callee is private, the occasions need
  not be the same: nobody else can call it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_infer.implication import follows
from traincheck_trace_schema.invariants import (
    APIParam,
    InputOutputParam,
    Invariant,
    OccasionParam,
    VarNameParam,
    VarTypeParam,
    function_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traincheck_trace_schema.invariants import Param, Params

_Choice: TypeAlias = "tuple[Param, bool]"  # whether the occasions must be the same


@attrs.frozen
class Known:
    """An invariant, and what tells its occasions from those of another."""

    invariant: Invariant
    occasions: Hashable


@attrs.frozen
class Functions:
    """How the functions of the runs are related.

    `bases`: the methods that a function overrides, the nearest first. `callers`: in calls of which
    functions it was called directly; None stands for the program.
    """

    bases: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    callers: Mapping[str, frozenset[str | None]] = attrs.field(factory=dict)


def without_implied(known: Iterable[Known], functions: Functions) -> list[Known]:
    """Drop what another one implies; of two that imply each other, one stays."""
    left = sorted(known, key=lambda one: one.invariant.id)
    generals = _Generals(functions)
    by_claim: defaultdict[tuple[str, Params], list[Known]] = defaultdict(list)
    for one in left:
        by_claim[one.invariant.relation, one.invariant.params].append(one)
    kept = []
    for one in left:
        claim = (one.invariant.relation, one.invariant.params)
        if _is_implied(one, by_claim, generals):
            by_claim[claim].remove(one)  # so that two cannot vouch for each other
        else:
            kept.append(one)
    return kept


def _is_implied(
    one: Known, by_claim: Mapping[tuple[str, Params], list[Known]], generals: _Generals
) -> bool:
    invariant = one.invariant
    for params, must_coincide in generals.of_params(invariant.params):
        for other in by_claim.get((invariant.relation, params), ()):
            if other is one or (must_coincide and other.occasions != one.occasions):
                continue
            if follows(invariant.precondition, other.invariant.precondition):
                return True
    return False


class _Generals:
    """Finds what is more general than a param."""

    def __init__(self, functions: Functions) -> None:
        self._bases = functions.bases
        self._callers = functions.callers
        # Of the bases of one function, the later are the more general.
        self._beside: defaultdict[str, set[str]] = defaultdict(set)
        for bases in functions.bases.values():
            for at, base in enumerate(bases):
                self._beside[base].update(bases[at + 1 :])

    def of_params(self, params: Params) -> Iterator[tuple[Params, bool]]:
        """Yield the params themselves, and those with one or more replaced by a general one."""
        for choice in product(*(self._of_param(param) for param in params)):
            yield tuple(param for param, _ in choice), any(must for _, must in choice)

    def _of_param(self, param: Param) -> list[_Choice]:
        found: list[_Choice] = [(param, False)]
        if isinstance(param, VarNameParam) and param.var_type is not None:
            found.append((_each_of_type(param, param.var_type), False))
        elif (function := function_of(param)) is not None:
            found += [(_renamed(param, name), must) for name, must in self._of_function(function)]
        return found

    def _of_function(self, function: str) -> Iterator[tuple[str, bool]]:
        bases = self._bases.get(function, ())
        yield from ((base, False) for base in bases)
        yield from ((base, True) for base in sorted(self._beside[function].difference(bases)))
        seen = {function}
        callee = function
        while (caller := self._only_caller(callee)) is not None and caller not in seen:
            seen.add(caller)
            for name in (caller, *self._bases.get(caller, ())):
                yield name, not _is_private(function)
            callee = caller

    def _only_caller(self, function: str) -> str | None:
        callers = self._callers.get(function, frozenset()) - {function}
        return next(iter(callers)) if len(callers) == 1 else None


def _is_private(function: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in function.split("."))


def _renamed(param: Param, function: str) -> Param:
    if isinstance(param, APIParam):
        return attrs.evolve(param, api_full_name=function)
    if isinstance(param, InputOutputParam):
        return attrs.evolve(param, api_name=function)
    if isinstance(param, OccasionParam):
        return attrs.evolve(param, function=function)
    return param


def _each_of_type(param: VarNameParam, type_: str) -> VarTypeParam:
    return VarTypeParam(
        var_type=type_,
        attr_name=param.attr_name,
        pre_value=param.pre_value,
        post_value=param.post_value,
        const_value=param.const_value,
    )
