"""What can be claimed of the number of calls in a step, and how it stands in an invariant."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.order.protocol import function_name
from traincheck_trace_schema.invariants import APIParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_trace_schema.invariants import Invariant

EXACTLY: Final = "exactly"
AT_LEAST: Final = "at_least"


@attrs.frozen(kw_only=True)
class CallCount:
    """A function is called `exactly` or `at_least` so often, or as often as an `other`."""

    function: str
    kind: str | None = None
    number: int = 0
    other: str | None = None

    @classmethod
    def of(cls, params: Params) -> CallCount:
        """Read params: a function, and a number of one kind or another function.

        Raises:
            TypeError: They are something else.
        """
        first, second = params
        function = function_name(first)
        if isinstance(second, APIParam):
            return cls(function=function, other=function_name(second))
        if (
            not isinstance(second, ValueParam)
            or second.name not in {EXACTLY, AT_LEAST}
            or type(second.value) is not int
            or second.value < 1
        ):
            raise TypeError(
                f"after an APIParam expected another, or a ValueParam {EXACTLY!r} or {AT_LEAST!r} "
                f"with a number of at least 1, got {second!r}"
            )
        return cls(function=function, kind=second.name, number=second.value)

    def params(self) -> Params:
        """Return how it stands in an invariant."""
        function = APIParam(api_full_name=self.function)
        if self.other is not None:
            return function, APIParam(api_full_name=self.other)
        return function, ValueParam(name=str(self.kind), value=self.number)

    @property
    def number_is_exact(self) -> bool:
        """Whether each object by itself has to keep to a number."""
        return self.kind == EXACTLY

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the functions that it is about."""
        return (self.function,) if self.other is None else (self.function, self.other)

    def in_words(self) -> str:
        """Return it as the end of a sentence."""
        if self.other is not None:
            return f"{self.function} is called as often as {self.other}"
        return f"{self.function} is called {str(self.kind).replace('_', ' ')} {_times(self.number)}"

    def what_was_counted(self, number: int, owner: str | None, wanted: int = 0) -> str:
        """Say what was counted where the claim does not hold."""
        by = "" if owner is None else f" of {owner}"
        called = f"called {_times(number)}" if number else "not called"
        told = f"{self.function}{by} was {called} in this step"
        return told if self.other is None else f"{told}, but {self.other} {_times(wanted)}"


def without_implied(invariants: Sequence[Invariant]) -> list[Invariant]:
    """Drop a bound, or that two numbers are equal, where the exact numbers say so already."""
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
        or not all(is_exact(name, one) for name in claims[one.id].functions)
    ]


def _times(number: int) -> str:
    return {0: "not", 1: "once", 2: "twice"}.get(number, f"{number} times")
