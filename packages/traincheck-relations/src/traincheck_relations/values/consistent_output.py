"""`ConsistentOutputRelation`: the tensors that a function returns always have a property.

Claims are made about losses: that they are finite, and how precise they are at least. In which
precision a program trains is its own choice, so that of the latter is made of the same model only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.of_model import is_of_model, model_in, of_model
from traincheck_relations.per_call import CallClaim, PerCallMonitor, Returned, Verdict
from traincheck_relations.values.call_values import is_loss, part_of, tensors_in
from traincheck_trace_schema.invariants import (
    APIParam,
    Free,
    Params,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_trace_schema.values import Json, Scalar

_TENSOR = "torch.Tensor"
_FINITE = "finite"
_BITS: Mapping[str, int] = {"bfloat16": 16, "float16": 16, "float32": 32, "float64": 64}


class ConsistentOutputRelation:
    """Every tensor that a function returns has an attribute that is equal to a constant."""

    name: ClassVar[str] = "ConsistentOutputRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return OutputProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        api, _, model = _parts(params)
        function = api.api_full_name
        return Requirements(
            functions={function: frozenset()},
            results=frozenset((function,)),
            variables={} if model is None else {"parameter": frozenset(("requires_grad",))},
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        claims = [CallClaim(_parts(one)[0].api_full_name, _Judge(one)) for one in params]
        return PerCallMonitor(claims)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        function, claimed, _ = _parts(params)
        if claimed.attr_name == _FINITE:
            return f"Each call of {function.api_full_name} returns what is finite"
        value = _shown(claimed.const_value)
        if value in _BITS:
            value += " or a more precise one"
        return (
            f"Each call of {function.api_full_name} returns tensors of {claimed.attr_name} {value}"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _, claimed, _ = _parts(params)
        if claimed.attr_name == _FINITE:
            return (
                "whether what the call was given is finite already; whether it divides by zero, "
                "takes the logarithm or root of it, or is left nothing by a mask; whether 16 bits "
                "overflow; the learning rate and the data of this step"
            )
        return (
            "in which precision this is computed: the region of autocast, a half() or float(), the "
            "dtype of the model and of its inputs, the default dtype"
        )


class OutputProposer:
    """Proposes what was seen of the tensor that a loss returned."""

    interests = Interests(kinds=frozenset(("call_end",)))

    def __init__(self) -> None:
        self._dtypes: set[tuple[str, str, str]] = set()
        self._finite: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None or not is_loss(call, event.record):
            return
        result = event.record["result"]
        if (model := event.run.model()) is not None:
            self._dtypes.add((call.function, str(part_of(result, ("dtype",))), model))
        if part_of(result, (_FINITE,)):
            self._finite.add(call.function)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function, dtype, model in sorted(self._dtypes):
            yield *_claim(function, "dtype", {"dtype": dtype}), of_model(model)
        for function in sorted(self._finite):
            yield _claim(function, _FINITE, value=True)


class _Judge:
    """Judges the tensors that a call returns; one that returns none is no occasion."""

    def __init__(self, params: Params) -> None:
        _, claimed, self._model = _parts(params)
        self._attribute = claimed.attr_name
        self._path: tuple[Scalar, ...] = tuple(claimed.attr_name.split("."))
        self._expected = _plain(claimed.const_value)

    def __call__(self, one: Returned) -> Verdict | None:
        """Say whether all tensors have the property."""
        if self._model not in {None, one.run.model()}:
            return None
        told = [
            value
            for tensor in tensors_in(one.end.get("result"))
            if (value := part_of({"tensor": dict(tensor)}, self._path)) is not None
        ]
        if not told:
            return None
        wrong = next((value for value in told if not _is_as_good(value, self._expected)), None)
        if wrong is None:
            return Verdict(held=True)
        return Verdict(
            held=False,
            happened=f"{one.call.function} returned a tensor of {self._attribute} {_shown(wrong)}, "
            f"where {_shown(self._expected)} was expected",
        )


def _claim(function: str, attribute: str, value: Json) -> Params:
    return (
        APIParam(api_full_name=function),
        VarTypeParam(var_type=_TENSOR, attr_name=attribute, const_value=value),
    )


def _is_as_good(value: Json, expected: Json) -> bool:
    """Whether a value is what was expected, or a dtype that is as precise."""
    bits, wanted = _BITS.get(str(value)), _BITS.get(str(expected))
    return value == expected if bits is None or wanted is None else bits >= wanted


def _plain(value: Json | Free) -> Json:
    """Return a constant as a trace tells it of a tensor: a dtype by its name alone."""
    if isinstance(value, Free):
        return None
    named = value.get("dtype") if isinstance(value, dict) else None
    shape = value.get("tuple") if isinstance(value, dict) else None
    return named or shape or value


def _shown(value: Json | Free) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else repr(plain)


def _parts(params: Params) -> tuple[APIParam, VarTypeParam, str | None]:
    """Return the function, what is claimed, and of which model; None: of any."""
    function, claimed, *model = params
    if (
        not isinstance(function, APIParam)
        or not isinstance(claimed, VarTypeParam)
        or isinstance(claimed.const_value, Free)
        or not all(map(is_of_model, model))
        or len(model) > 1
    ):
        msg = (
            "ConsistentOutputRelation takes an APIParam, a VarTypeParam with a constant, and "
            f"perhaps the ValueParam 'parameters', got {params!r}"
        )
        raise TypeError(msg)
    return function, claimed, model_in(model)
