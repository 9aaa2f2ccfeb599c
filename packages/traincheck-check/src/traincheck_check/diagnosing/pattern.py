"""The kind of an invariant's claim, apart from the names of its program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.invariants import (
    InputOutputParam,
    OccasionParam,
    ScopeParam,
    ValueParam,
    VarNameParam,
    VarTypeParam,
    function_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_trace_schema.invariants import Invariant, Param

MODE = "training"  # the flag of a module, and the argument of a function that is given it
_UPDATED = frozenset(("data", "grad"))  # what training itself changes
_OF_METHOD = {"step": 3, "backward": 4, "zero_grad": 4}


@attrs.frozen(kw_only=True)
class Pattern:
    """What a claim is about.

    `attributes`: of variables. `given`: arguments and results. `is_state`: about how variables are,
    not about what a call does to them. `quantifier`: of a claim about variables of a type.
    """

    relation: str
    functions: frozenset[str] = frozenset()
    method: str | None = None  # the last part of the first function's name, as "step"
    attributes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    is_state: bool = False
    quantifier: str | None = None
    scope: str | None = None

    @property
    def tells(self) -> int:
        """How much a violation tells about the cause; 0 is the most.

        That nothing at all is updated tells most, then a state that is wrong, then what follows
        from it. What is seen of variables tells more than what is not called.
        """
        if not self.attributes:
            return 8 if self.given else 9
        if self.scope is not None:
            return 5 if "grad" in self.attributes else 6  # gradients differ before the data does
        if self.concerns_all:
            return 0 if self.method == "step" else 2
        return 1 if self.is_state else _OF_METHOD.get(self.method or "", 7)

    @property
    def concerns_all(self) -> bool:
        """Whether a violation says that no variable at all was as it should be."""
        return self.quantifier == "some" and not _UPDATED.isdisjoint(self.attributes)

    @property
    def is_of_calls(self) -> bool:
        """Whether it is about which functions are called, and about nothing else."""
        return not self.attributes and not self.given

    @property
    def is_of_mode(self) -> bool:
        """Whether it is about training and evaluation mode."""
        return MODE in self.attributes or MODE in self.given

    @property
    def kind(self) -> tuple[object, ...] | None:
        """What two claims have in common that say the same of other parts; None if nothing tells.

        >>> Pattern(relation="R", attributes=("requires_grad",), is_state=True).kind
        ('R', None, ('requires_grad',), (), True)
        """
        if self.is_of_calls:
            return None
        method = self.method if self.attributes else None
        return self.relation, method, self.attributes, self.given, self.is_state


def pattern_of(invariant: Invariant) -> Pattern:
    """Return the kind of an invariant's claim."""
    params = invariant.params
    functions = [name for name in map(function_of, params) if name is not None]
    variables = [param for param in params if isinstance(param, VarTypeParam | VarNameParam)]
    quantified = [param for param in variables if isinstance(param, VarTypeParam)]
    return Pattern(
        relation=invariant.relation,
        functions=frozenset(functions),
        method=functions[0].rpartition(".")[2] if functions else None,
        attributes=tuple(dict.fromkeys(param.attr_name for param in variables)),
        given=tuple(dict.fromkeys(name for param in params for name in _given(param))),
        is_state=any(isinstance(param.const_value, bool) for param in variables)
        or any(isinstance(param, OccasionParam) and param.phase == "begin" for param in params),
        quantifier=next((param.quantifier for param in quantified), None),
        scope=next((param.scope for param in params if isinstance(param, ScopeParam)), None),
    )


def _given(param: Param) -> Iterator[str]:
    if isinstance(param, InputOutputParam):
        yield param.name
    elif isinstance(param, ValueParam) and param.name == "mode":
        yield MODE  # which stands for every flag and rate that follows it
