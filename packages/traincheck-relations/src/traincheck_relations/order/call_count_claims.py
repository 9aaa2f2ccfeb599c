"""What can be claimed of the number of calls in a step, and how it stands in an invariant."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.of_model import is_of_model, model_in, of_model
from traincheck_relations.order.protocol import function_name
from traincheck_trace_schema.invariants import APIParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_trace_schema.invariants import Invariant

EXACTLY: Final = "exactly"
AT_LEAST: Final = "at_least"
EVER: Final = "ever"

_KINDS: Final = frozenset((EXACTLY, AT_LEAST, EVER))


@attrs.frozen(kw_only=True)
class CallCount:
    """A function is called `exactly` or `at_least` so often, or as often as an `other`.

    Or `ever`, in a step or one before it, in the training of one model.
    """

    function: str
    kind: str | None = None
    number: int = 0
    other: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, params: Params) -> CallCount:
        """Read params: a function, and a number of one kind or another function.

        Raises:
            TypeError: They are something else.
        """
        first, second, *models = params
        function = function_name(first)
        if isinstance(second, APIParam) and not models:
            return cls(function=function, other=function_name(second))
        if (
            not isinstance(second, ValueParam)
            or second.name not in _KINDS
            or type(second.value) is not int
            or second.value < 1
            or [*map(is_of_model, models)] != [True] * (second.name == EVER)
        ):
            raise TypeError(
                f"after an APIParam expected another, or a ValueParam {EXACTLY!r} or {AT_LEAST!r} "
                f"with a number of at least 1, or {EVER!r} and the ValueParam 'parameters', got "
                f"{params[1:]!r}"
            )
        model = model_in(models)
        return cls(function=function, kind=second.name, number=second.value, model=model)

    def params(self) -> Params:
        """Return how it stands in an invariant."""
        function = APIParam(api_full_name=self.function)
        if self.other is not None:
            return function, APIParam(api_full_name=self.other)
        number = ValueParam(name=str(self.kind), value=self.number)
        return (
            (function, number) if self.model is None else (function, number, of_model(self.model))
        )

    @property
    def number_is_exact(self) -> bool:
        """Whether each object by itself has to keep to a number."""
        return self.kind == EXACTLY

    @property
    def asks_if_ever(self) -> bool:
        """Whether it asks if a function is called at all, and not how often."""
        return self.kind == EVER

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the functions that it is about."""
        return (self.function,) if self.other is None else (self.function, self.other)

    def in_words(self) -> str:
        """Return it as the end of a sentence."""
        if self.other is not None:
            return f"{self.function} is called as often as {self.other}"
        if self.asks_if_ever:
            return f"{self.function} is called, or was in a step before it"
        return f"{self.function} is called {str(self.kind).replace('_', ' ')} {_times(self.number)}"

    def what_was_counted(self, number: int, owner: str | None, wanted: int = 0) -> str:
        """Say what was counted where the claim does not hold."""
        if self.asks_if_ever:
            return f"{self.function} was not called in any step so far"
        by = "" if owner is None else f" of {owner}"
        called = f"called {_times(number)}" if number else "not called"
        told = f"{self.function}{by} was {called} in this step"
        return told if self.other is None else f"{told}, but {self.other} {_times(wanted)}"


def without_implied(invariants: Sequence[Invariant]) -> list[Invariant]:
    """Drop a bound, or that two numbers are equal, where the exact numbers say so already.

    They do not say that a function is called at all.
    """
    claims = {one.id: CallCount.of(one.params) for one in invariants}
    exact: defaultdict[str, dict[str, Invariant]] = defaultdict(dict)
    for one in invariants:
        if (claim := claims[one.id]).number_is_exact:
            exact[claim.function][one.id] = one

    def is_exact(function: str, when: Invariant) -> bool:
        return any(
            always or other.precondition == when.precondition
            for other in exact[function].values()
            for always in [all(group == ALWAYS for group in other.precondition.values())]
        )

    return [
        one
        for one in invariants
        if claims[one.id].number_is_exact
        or claims[one.id].asks_if_ever
        or not all(is_exact(name, one) for name in claims[one.id].functions)
    ]


def _times(number: int) -> str:
    return {0: "not", 1: "once", 2: "twice"}.get(number, f"{number} times")
