"""`ConsistentInputRelation`: tensors that a call is given always have a property, or agree in one.

Claims are made about losses: that a tensor requires a gradient where gradients are enabled, or
holds no probabilities, and that two agree in shape or in the number of rows; about what
communication and tracked models are given: that no row is lost, which shows as a row of zeros; and
about what the program gives its model: that it lies in [0, 1], or does not, as images that are
normalised, or were forgotten to be.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.conditions.own_program import is_of_torch
from traincheck_relations.conditions.properties import FORWARD, object_name
from traincheck_relations.per_call import CallClaim, Judge, PerCallMonitor, Returned, Verdict
from traincheck_relations.value import payload
from traincheck_relations.values.call_values import (
    arguments_of,
    has_gradients,
    is_loss,
    part_of,
    value_of,
)
from traincheck_trace_schema.invariants import InputOutputParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_relations.api import Call
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.values import Scalar

_COMMUNICATES = "torch.distributed."
# They have one entry for each class: that there are as many classes as rows is an accident.
_PER_CLASS = frozenset(("weight", "pos_weight"))
# Documented to take scores or logarithms of probabilities. Shares of a whole are a mistake there;
# what other functions take is not known, so that nothing is claimed of them.
_TAKES_NO_PROBABILITIES = frozenset(
    f"torch.nn.functional.{name}"
    for name in (
        "cross_entropy",
        "kl_div",
        "nll_loss",
    )
)
# Documented to take logarithms of shares: what has none of them is a score, or a softmax over
# another dimension.
_TAKES_LOGARITHMS = frozenset(("torch.nn.functional.kl_div", "torch.nn.functional.nll_loss"))
_TENSOR = "torch.Tensor"
_GRAD: _Path = ("requires_grad",)
_SHAPE: _Path = ("shape",)
_ROWS: _Path = ("shape", 0)
_SHARES: _Path = ("facts", "rows_sum_to_one")
_LOGARITHMS: _Path = ("facts", "rows_are_log_shares")
_LOST_ROW: _Path = ("facts", "has_zero_row")
_UNIT: _Path = ("facts", "in_unit_interval")
_ENOUGH = 32  # elements that don't all lie in [0, 1] by accident

_Path: TypeAlias = "tuple[Scalar, ...]"
_Tensors: TypeAlias = "Mapping[str, Mapping[str, Any]]"


class ConsistentInputRelation:
    """A tensor argument always has a property, or two always agree in one."""

    name: ClassVar[str] = "ConsistentInputRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return InputProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        first, second = _parts(params)
        names = {first.name} | ({second.name} if isinstance(second, InputOutputParam) else set())
        contexts = ("grad_mode", "inference_mode") if first.additional_path == _GRAD else ()
        return Requirements(
            functions={first.api_name: frozenset(names)}, contexts=frozenset(contexts)
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return PerCallMonitor([_claim(one) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        first, second = _parts(params)
        path = first.additional_path or ()
        if isinstance(second, InputOutputParam):
            what = "as many rows as" if path == _ROWS else "the shape of"
            return f"Each call of {first.api_name} is given {first.name} with {what} {second.name}"
        words = _in_words(path, is_so=second.value is True)
        return f"Each call of {first.api_name} is given {first.name} {words}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        first, second = _parts(params)
        path = first.additional_path or ()
        if isinstance(second, InputOutputParam):
            return (
                f"the shapes of {first.name} and {second.name}: (n, 1) against (n,) is broadcast "
                "to (n, n) without an error; where a view, a squeeze or a reduction is over "
                "another dimension than was meant; whether both come from the same batch"
            )
        if path == _GRAD:
            return (
                f"what cuts {first.name} from the graph, or ties it to one: detach, no_grad, "
                ".item(), argmax, a tensor made anew from its values; whether it should require "
                "one at all, as a target that another model gives"
            )
        if path == _LOST_ROW:
            return (
                f"where rows of {first.name} got lost: a transfer between devices or ranks, a "
                "buffer that is used before it is filled, a mask, padding"
            )
        if path == _UNIT:
            return (
                f"how {first.name} is scaled before {first.api_name} is called: a division that is "
                "left out or done twice, a normalisation by mean and deviation, another data set"
            )
        if path == _LOGARITHMS:
            return (
                f"whether log_softmax is applied before {first.api_name}, and over the dimension "
                "of the classes; whether softmax is in its place"
            )
        return (
            f"whether a softmax is applied before {first.api_name}, which takes scores or "
            "logarithms: in the last layer of the model, or in the loop"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        first, second = _parts(params)
        if first.additional_path == _LOST_ROW:  # rows of one-hot or padded data may well be zero
            return 0.4
        if first.additional_path == _UNIT:
            return 0.6
        is_usual = isinstance(second, InputOutputParam) or second.value is True
        return 0.8 if is_usual or first.additional_path != _GRAD else 0.6

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        """Drop that two have as many rows where they have the same shape.

        And that rows don't sum to one where they are logarithms.
        """
        logarithms = {
            (*_names(one.params), str(one.precondition))
            for one in invariants
            if _parts(one.params)[0].additional_path == _LOGARITHMS
        }
        same_shape = {
            (*_names(one.params), str(one.precondition))
            for one in invariants
            if _parts(one.params)[0].additional_path == _SHAPE
        }
        return [
            one
            for one in invariants
            for names in [(*_names(one.params), str(one.precondition))]
            for path in [_parts(one.params)[0].additional_path]
            if not (path == _ROWS and names in same_shape)
            and not (path == _SHARES and names in logarithms)
        ]


class InputProposer:
    """Proposes what was seen of the tensors that a loss, or communication, was given."""

    interests = Interests(kinds=frozenset(("call_end",)))

    def __init__(self) -> None:
        self._values: set[tuple[str, str, _Path, bool]] = set()
        self._pairs: set[tuple[str, str, str, _Path]] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None:
            return
        if is_loss(call, event.record):
            tensors = _batches(call)
            self._take_loss(call, tensors)
            for first, second in combinations(tensors, 2):
                self._take_pair(call.function, first, second, tensors)
        elif call.function.startswith(_COMMUNICATES) or FORWARD in call.names:
            for name in _batches(call):
                self._take(call, name, _LOST_ROW, value=False)
            if _is_own_model(call):
                self._take_ranges(call)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function, name, path, value in sorted(self._values, key=str):
            yield _param(function, name, path), ValueParam(name="value", value=value)
        for function, first, second, path in sorted(self._pairs, key=str):
            yield _param(function, first, path), _param(function, second, path)

    def _take_loss(self, call: Call, tensors: _Tensors) -> None:
        for name, tensor in tensors.items():
            if "float" in tensor["dtype"] and has_gradients(call):
                for value in (True, False):
                    self._take(call, name, _GRAD, value=value)
        if call.function in _TAKES_NO_PROBABILITIES:
            self._take(call, next(iter(tensors)), _SHARES, value=False)
        if call.function in _TAKES_LOGARITHMS:
            self._take(call, next(iter(tensors)), _LOGARITHMS, value=True)

    def _take_ranges(self, call: Call) -> None:
        for name, tensor in _batches(call).items():
            if prod(tensor["shape"]) >= _ENOUGH:
                for value in (True, False):
                    self._take(call, name, _UNIT, value=value)

    def _take(self, call: Call, name: str, path: _Path, *, value: bool) -> None:
        """Take a value, if it is what is told of an argument."""
        if part_of(arguments_of(call).get(name), path) is value:
            self._values.add((call.function, name, path, value))

    def _take_pair(self, function: str, first: str, second: str, tensors: _Tensors) -> None:
        shapes = tensors[first]["shape"], tensors[second]["shape"]
        if shapes[0] == shapes[1]:
            self._pairs.add((function, first, second, _SHAPE))
        if shapes[0][0] == shapes[1][0]:
            self._pairs.add((function, first, second, _ROWS))


def _is_own_model(call: Call) -> bool:
    """Whether a call is one of a tracked model of the program, and not of a part of one."""
    is_part = any(FORWARD in one.names and not is_of_torch(one.function) for one in call.around())
    return not is_part and object_name(call) is not None and not is_of_torch(call.function)


def _claim(params: Params) -> CallClaim:
    first, second = _parts(params)
    names = [first.name]
    if isinstance(second, InputOutputParam):
        judge = _agreement(first, second)
        names.append(second.name)
    else:
        judge = _constant(first, second.value)
    return CallClaim(first.api_name, judge, judged=tuple(f"call.arg.{name}." for name in names))


def _constant(given: InputOutputParam, expected: Scalar) -> Judge:
    path = given.additional_path or ()
    learning: dict[int, int] = {}  # by process: the last step in which gradients flow

    def judge(one: Returned) -> Verdict | None:
        value = value_of(given, one.call, one.end)
        # Without gradients nothing requires one.
        if value is None or (path == _GRAD and not has_gradients(one.call)):
            return None
        if value is True and path == _GRAD:
            learning[one.run.process] = one.step
        if value is expected:
            return Verdict(held=True)
        if path == _GRAD and _may_be(
            given, one.call, expected=expected, has_learnt=learning.get(one.run.process) == one.step
        ):
            return None
        seen = _in_words(path, is_so=value is True)
        return Verdict(held=False, happened=f"{one.call.function} was given {given.name} {seen}")

    return judge


def _may_be(given: InputOutputParam, call: Call, *, expected: Scalar, has_learnt: bool) -> bool:
    """Whether an argument of a loss may be detached that was not, or the other way round.

    Either of two may be detached, not both; what is computed beside the loss of a step is a metric.
    """
    flows_through_another = any(
        tensor.get("requires_grad") is True
        for name, tensor in _batches(call).items()
        if name != given.name
    )
    if expected is True:
        return flows_through_another or has_learnt
    return not flows_through_another


def _agreement(first: InputOutputParam, second: InputOutputParam) -> Judge:
    def judge(one: Returned) -> Verdict | None:
        values = value_of(first, one.call, one.end), value_of(second, one.call, one.end)
        if None in values:
            return None
        if values[0] == values[1]:
            return Verdict(held=True)
        shapes = [
            f"{given.name} of shape {part_of(arguments_of(one.call).get(given.name), _SHAPE)}"
            for given in (first, second)
        ]
        return Verdict(held=False, happened=f"{one.call.function} was given {' and '.join(shapes)}")

    return judge


def _batches(call: Call) -> dict[str, Mapping[str, Any]]:
    """Return the tensor arguments that may have a row for each sample, by name."""
    tensors = {name: payload(value, "tensor") for name, value in arguments_of(call).items()}
    return {
        name: tensor
        for name, tensor in tensors.items()
        if tensor and tensor["shape"] and name not in _PER_CLASS
    }


_WORDS: Mapping[Scalar, tuple[str, str]] = {
    "requires_grad": ("that requires a gradient", "that requires no gradient"),
    "rows_sum_to_one": ("whose rows sum to one", "whose rows don't sum to one"),
    "rows_are_log_shares": (
        "whose rows are logarithms of shares of one",
        "whose rows are no logarithms of shares of one",
    ),
    "has_zero_row": ("with a row of zeros", "without a row of zeros"),
    "in_unit_interval": ("that lies in [0, 1]", "that does not lie in [0, 1]"),
}


def _in_words(path: Sequence[Scalar], *, is_so: bool) -> str:
    fact = path[-1] if path else ""
    return _WORDS.get(fact, (f"with {fact}", f"without {fact}"))[not is_so]


def _names(params: Params) -> tuple[str, ...]:
    return tuple(
        f"{one.api_name}:{one.name}" for one in params if isinstance(one, InputOutputParam)
    )


def _param(function: str, name: str, path: _Path) -> InputOutputParam:
    return InputOutputParam(
        name=name, type=_TENSOR, additional_path=path, api_name=function, is_input=True
    )


def _parts(params: Params) -> tuple[InputOutputParam, InputOutputParam | ValueParam]:
    first, second = params
    if (
        not isinstance(first, InputOutputParam)
        or not first.is_input
        or not isinstance(second, InputOutputParam | ValueParam)
        or (isinstance(second, InputOutputParam) and second.api_name != first.api_name)
    ):
        msg = (
            "ConsistentInputRelation takes an argument, and another one of the same function or a "
            f"value, got {params!r}"
        )
        raise TypeError(msg)
    return first, second
