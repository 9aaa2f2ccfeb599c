"""`ConsistentInputOutputRelation`: a property of the result equals one of an argument or context.

Claims are made about what autocast computes (the result has the context's dtype), and about the
program's own modules (the result has a row for each row of the first tensor that they are given).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.conditions.properties import FORWARD
from traincheck_relations.per_call import CallClaim, PerCallMonitor, Returned, Verdict
from traincheck_relations.values.call_values import (
    ALL_ARGUMENTS,
    INPUTS,
    OUTPUTS,
    arguments_of,
    part_of,
    tensors_in,
    value_of,
)
from traincheck_trace_schema.invariants import APIParam, InputOutputParam, Params

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_relations.api import Call
    from traincheck_trace_schema.values import Json, Scalar

_AUTOCAST = "ctx.autocast.dtype"
_OF_TORCH = "torch."
_TENSOR = "torch.Tensor"


class ConsistentInputOutputRelation:
    """A property of a tensor that is returned equals one of what the call was given."""

    name: ClassVar[str] = "ConsistentInputOutputRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return InputOutputProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        given, function, _ = _parts(params)
        name = function.api_full_name
        if given.name.startswith("ctx."):
            context = given.name.split(".")[1]
            return Requirements(
                functions={name: frozenset()},
                results=frozenset((name,)),
                contexts=frozenset((context,)),
            )
        # Which tensor is the first can only be told where all are recorded.
        wanted = ALL_ARGUMENTS if given.name == INPUTS else given.name
        return Requirements(functions={name: frozenset((wanted,))}, results=frozenset((name,)))

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        claims = [CallClaim(_parts(one)[1].api_full_name, _Judge(one)) for one in params]
        return PerCallMonitor(claims)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        given, function, result = _parts(params)
        if given.name == _AUTOCAST:
            return f"Each call of {function.api_full_name} returns the dtype of its autocast"
        return (
            f"Each call of {function.api_full_name} returns a tensor whose {_path(result)} is "
            f"{_path(given)} of {given.name}"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        given, _, _ = _parts(params)
        if given.name == _AUTOCAST:
            return (
                "whether the call is made inside the region of autocast, with the dtype that was "
                "meant; whether a cast, a custom function or a wrapper takes its result back to "
                "another precision"
            )
        return (
            "which reshape, view, permute or reduction mixes the dimension of the batch with "
            "another (batch_first); whether rows are dropped or repeated"
        )


class InputOutputProposer:
    """Proposes what was seen once."""

    interests = Interests(kinds=frozenset(("call_end",)))

    def __init__(self) -> None:
        self._cast: set[str] = set()
        self._rows: set[tuple[str, str]] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None:
            return
        self._take_autocast(call, event.record.get("result"))
        if FORWARD in call.names and not call.function.startswith(_OF_TORCH):
            self._take_rows(call, event.record.get("result"))

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function in sorted(self._cast):
            yield _claim(function, _AUTOCAST, None, ("dtype",))
        for function, name in sorted(self._rows):
            yield _claim(function, name, ("shape", 0), ("shape", 0))

    def _take_autocast(self, call: Call, result: Json) -> None:
        """Take a function that autocast made compute in another precision than it was given."""
        dtype = _plain((call.begin.get("ctx") or {}).get("autocast.dtype"))
        if dtype is None or part_of(result, ("dtype",)) != dtype:
            return
        # Weights stay as they are: what is computed with shows in the first.
        first = next(tensors_in(list(arguments_of(call).values())), None)
        if first is not None and "float" in first["dtype"] and first["dtype"] != dtype:
            self._cast.add(call.function)

    def _take_rows(self, call: Call, result: Json) -> None:
        rows = part_of(result, ("shape", 0))
        for name, value in arguments_of(call).items():
            if (given := part_of(value, ("shape", 0))) is not None:
                if given == rows:
                    self._rows.add((call.function, name))
                return


class _Judge:
    """Compares what a call is given with what it returns; what is not told is no occasion."""

    def __init__(self, params: Params) -> None:
        self._given, _, self._result = _parts(params)

    def __call__(self, one: Returned) -> Verdict | None:
        """Say whether both are equal."""
        given = _plain(value_of(self._given, one.call, one.end))
        result = _plain(value_of(self._result, one.call, one.end))
        if given is None or result is None:
            return None
        if given == result:
            return Verdict(held=True)
        return Verdict(
            held=False,
            happened=f"{one.call.function} returned a tensor of {_path(self._result)} {result}, "
            f"but {self._given.name} has {given}",
        )


def _claim(
    function: str,
    name: str,
    given: tuple[Scalar, ...] | None,
    result: tuple[Scalar, ...],
) -> Params:
    return (
        InputOutputParam(
            name=name,
            type="torch.dtype" if given is None else _TENSOR,
            additional_path=given,
            api_name=function,
            is_input=True,
        ),
        APIParam(api_full_name=function),
        InputOutputParam(
            name=OUTPUTS,
            index=0,
            type=_TENSOR,
            additional_path=result,
            api_name=function,
            is_input=False,
        ),
    )


def _plain(value: Json) -> Json:
    """Return a dtype by its name alone, as a trace tells it of a tensor."""
    named = value.get("dtype") if isinstance(value, dict) else None
    return value if named is None else named


def _path(param: InputOutputParam) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else str(part) for part in param.additional_path or ()
    )


def _parts(params: Params) -> tuple[InputOutputParam, APIParam, InputOutputParam]:
    given, function, result = params
    if (
        not isinstance(given, InputOutputParam)
        or not isinstance(function, APIParam)
        or not isinstance(result, InputOutputParam)
        or not given.is_input
        or result.is_input
    ):
        msg = f"ConsistentInputOutputRelation takes input, function and output, got {params!r}"
        raise TypeError(msg)
    return given, function, result
