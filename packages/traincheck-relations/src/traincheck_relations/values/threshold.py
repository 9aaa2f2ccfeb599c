"""`ThresholdRelation`: a number that a call returns is bounded by an argument of it.

Bounds are arguments whose name says so, as `max_length` or `min_value`. The number is the result
itself, the element of a tensor that has one, or, where the bound is whole, the length of a tensor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeGuard

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.per_call import CallClaim, PerCallMonitor, Returned, Verdict
from traincheck_relations.values.call_values import OUTPUTS, arguments_of, part_of, value_of
from traincheck_trace_schema.invariants import APIParam, InputOutputParam, Params

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_relations.api import Call
    from traincheck_trace_schema.values import Json, Scalar

_IS_UPPER = re.compile(r"(^|_)max(imum)?(_|$)")
_IS_LOWER = re.compile(r"(^|_)min(imum)?(_|$)")
_NEAR = 0.2  # of the bound: what never comes near it says nothing
_PATHS: tuple[_Path, ...] = ((), ("value",), ("shape", -1))

_Path: TypeAlias = "tuple[Scalar, ...]"
_Key: TypeAlias = "tuple[str, str, _Path]"  # function, argument, path into the result


class ThresholdRelation:
    """A number in the result is at most, or at least, an argument."""

    name: ClassVar[str] = "ThresholdRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ThresholdProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        smaller, function, greater = _parts(params)
        bound = smaller if smaller.is_input else greater
        name = function.api_full_name
        return Requirements(functions={name: frozenset((bound.name,))}, results=frozenset((name,)))

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        claims = [CallClaim(_parts(one)[1].api_full_name, _Judge(one)) for one in params]
        return PerCallMonitor(claims)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        first, function, last = _parts(params)
        bound, result = (first, last) if first.is_input else (last, first)
        relation = "at most" if first.is_input else "at least"
        what = "length" if (result.additional_path or ())[:1] == ("shape",) else "value"
        return f"Each call of {function.api_full_name} returns a {what} of {relation} {bound.name}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        smaller, function, greater = _parts(params)
        bound = smaller if smaller.is_input else greater
        return (
            f"whether {function.api_full_name} honours {bound.name}: a setting that overrides it, "
            "another implementation in its place; whether the value is computed in a precision "
            "that is too low, or was not finite"
        )


class ThresholdProposer:
    """Proposes a bound that held whenever it was given, and that a result came near to."""

    interests = Interests(kinds=frozenset(("call_end",)))

    def __init__(self) -> None:
        self._near: set[_Key] = set()
        self._broken: set[_Key] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if event.call is not None:
            for name, value in arguments_of(event.call).items():
                if _is_number(value) and _is_bound(name):
                    self._take(event.call, name, value, event.record.get("result"))

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function, name, path in sorted(self._near - self._broken, key=str):
            bound = InputOutputParam(name=name, type="float", api_name=function, is_input=True)
            result = InputOutputParam(
                name=OUTPUTS,
                index=0 if path else None,
                type="torch.Tensor" if path else "float",
                additional_path=path or None,
                api_name=function,
                is_input=False,
            )
            first, last = (bound, result) if _IS_UPPER.search(name) else (result, bound)
            yield first, APIParam(api_full_name=function), last

    def _take(self, call: Call, name: str, bound: float, result: Json) -> None:
        for path in _PATHS:
            found = part_of(result, path)
            if not _is_number(found) or (path[:1] == ("shape",) and not isinstance(bound, int)):
                continue
            key = (call.function, name, path)
            if not (found <= bound if _IS_UPPER.search(name) else found >= bound):
                self._broken.add(key)
            elif abs(found - bound) <= _NEAR * abs(bound):
                self._near.add(key)


class _Judge:
    """Compares bound and result; where one is no number, there is no occasion.

    The old format puts what is greater first, and so do we.
    """

    def __init__(self, params: Params) -> None:
        self._greater, _, self._smaller = _parts(params)

    def __call__(self, one: Returned) -> Verdict | None:
        """Say whether the bound is kept."""
        greater = value_of(self._greater, one.call, one.end)
        smaller = value_of(self._smaller, one.call, one.end)
        if not _is_number(greater) or not _is_number(smaller):
            return None
        if smaller <= greater:
            return Verdict(held=True)
        is_upper = self._greater.is_input
        bound = self._greater if is_upper else self._smaller
        returned, limit = (smaller, greater) if is_upper else (greater, smaller)
        return Verdict(
            held=False,
            happened=f"{one.call.function} returned {returned}, "
            f"{'more' if is_upper else 'less'} than {bound.name}, which was {limit}",
        )


def _is_bound(name: str) -> bool:
    return bool(_IS_UPPER.search(name)) != bool(_IS_LOWER.search(name))


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parts(params: Params) -> tuple[InputOutputParam, APIParam, InputOutputParam]:
    first, function, last = params
    if (
        not isinstance(first, InputOutputParam)
        or not isinstance(function, APIParam)
        or not isinstance(last, InputOutputParam)
        or first.is_input == last.is_input
    ):
        msg = (
            "ThresholdRelation takes what is greater, a function and what is smaller, one an "
            f"argument and the other a result, got {params!r}"
        )
        raise TypeError(msg)
    return first, function, last
