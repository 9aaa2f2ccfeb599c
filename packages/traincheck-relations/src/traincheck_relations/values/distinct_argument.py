"""`DistinctArgumentRelation`: what a function is given, or returns, differs between calls or ranks.

Claims are made about what a tracked model is given, and about what `torch.utils.data` returns.
Compared is the content of all tensors together, as a batch is several of them:

- `calls`: two calls in a row of one process differ, as the batches of successive steps do;
- `run`: no content comes a second time in the whole run, as where each epoch is shuffled anew;
- `ranks`: the n-th call of a window differs between any two ranks, as the parts of a batch do.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.conditions.own_program import is_of_torch
from traincheck_relations.conditions.properties import FORWARD
from traincheck_relations.values.call_values import OUTPUTS, arguments_of, tensors_in, value_of
from traincheck_relations.values.distinct_monitor import (
    Claim,
    Content,
    DistinctMonitor,
    is_compared,
)
from traincheck_trace_schema.invariants import InputOutputParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_relations.api import Call
    from traincheck_trace_schema.values import Json

_LOADS = "torch.utils.data."
# They begin an epoch: only where there was a second one is it known whether batches come again.
# That a sampler is told of it says that they should not, in any program.
_ITERATES = "torch.utils.data.DataLoader.__iter__"
_SHUFFLES = "torch.utils.data.DistributedSampler.set_epoch"
_ENOUGH_ROWS = 4  # a last batch of one sample is likely to come again
_ENOUGH_ELEMENTS = 32  # and so are a few labels
_THAN: Mapping[str, str] = {
    "calls": "than the call before",
    "run": "than every call before",
    "ranks": "than on other ranks",
}

_CAUSES: Mapping[str, str] = {
    "calls": (
        "whether the workers of the data loader all yield the same data (an iterable data set has "
        "to be split by get_worker_info); whether the next batch is taken in each step; whether a "
        "seed is set again"
    ),
    "run": (
        "whether each epoch is shuffled anew: set_epoch of a DistributedSampler, a generator or a "
        "seed that is set again at its beginning; whether one batch is used in every step"
    ),
    "ranks": (
        "whether the data is divided between the ranks: a DistributedSampler, or a split by rank; "
        "whether all ranks draw with the same seed"
    ),
}

_Values: TypeAlias = "tuple[InputOutputParam, ...]"


class DistinctArgumentRelation:
    """The content of an argument, or of the result, differs between calls or ranks."""

    name: ClassVar[str] = "DistinctArgumentRelation"
    group: ClassVar[str] = "distinct_arg"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return DistinctProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        values, _ = _parts(params)
        function = values[0].api_name
        names = frozenset(value.name for value in values if value.is_input)
        results = frozenset(value.api_name for value in values if not value.is_input)
        return Requirements(
            functions={function: names},
            results=results,
            contexts=frozenset(("grad_mode", "inference_mode")),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return DistinctMonitor([Claim(*_parts(one)) for one in params], content_of)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        values, between = _parts(params)
        names = " and ".join(value.name for value in values if value.is_input)
        what = f"is given another {names}" if names else "returns another result"
        return f"Each call of {values[0].api_name} {what} {_THAN[between]}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _, between = _parts(params)
        return _CAUSES[between]


class DistinctProposer:
    """Proposes data of which two different contents were seen."""

    interests = Interests(kinds=frozenset(("call_end",)))

    def __init__(self) -> None:
        self._values: dict[str, _Values] = {}  # of a function, as its first call has them
        self._first: dict[str, Content] = {}
        self._distinct: set[str] = set()
        # Begun, by process, function and line: loaders of an evaluation stand in another one.
        self._epochs: Counter[tuple[int, str, int | None]] = Counter()
        self._second: set[str] = set()  # by what data of a second epoch is known to have been seen
        self._ranks: set[int] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None or not (FORWARD in call.names or call.function.startswith(_LOADS)):
            return
        if not is_compared(event, call):
            return
        for begins in call.names & {_ITERATES, _SHUFFLES}:
            self._epochs[event.process, begins, call.begin.get("src")] += 1
            return
        self._ranks.add(event.rank)
        self._second.update(
            begins
            for (process, begins, _), number in self._epochs.items()
            if number > 1 and process == event.process
        )
        if call.function in self._distinct:
            return
        values = self._values.get(call.function) or tuple(_values(call))
        content = content_of([value_of(value, call, event.record) for value in values])
        if content is not None:
            self._values[call.function] = values
            if self._first.setdefault(call.function, content) != content:
                self._distinct.add(call.function)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function in sorted(self._distinct):
            between = ["calls"]
            if _SHUFFLES in self._second or (self._second and not is_of_torch(function)):
                between.append("run")
            if len(self._ranks) > 1:
                between.append("ranks")
            for which in between:
                yield *self._values[function], ValueParam(name="between", value=which)


def _values(call: Call) -> Iterator[InputOutputParam]:
    """Yield what may be data of a call, if it is one of a model or of what loads data."""
    if call.function.startswith(_LOADS):
        yield _value(call, OUTPUTS, is_input=False)
    elif FORWARD in call.names:
        for name, value in arguments_of(call).items():
            if any(map(_is_data, tensors_in(value))):
                yield _value(call, name, is_input=True)


def _value(call: Call, name: str, *, is_input: bool) -> InputOutputParam:
    return InputOutputParam(
        name=name, type="torch.Tensor", api_name=call.function, is_input=is_input
    )


def content_of(value: Json) -> Content | None:
    """Return what tells data from others; None if it is not told, or may well come again."""
    told = [tensor for tensor in tensors_in(value) if _is_data(tensor)]
    if sum(prod(tensor["shape"]) for tensor in told) < _ENOUGH_ELEMENTS:
        return None
    return tuple(str(tensor["digest"]) for tensor in told)


def _is_data(tensor: Mapping[str, Any]) -> bool:
    """Whether a tensor is a batch; what requires a gradient differs because the model does."""
    shape = tensor["shape"]
    is_told = isinstance(tensor.get("digest"), str) and not tensor.get("requires_grad")
    return is_told and bool(shape) and shape[0] >= _ENOUGH_ROWS


def _parts(params: Params) -> tuple[_Values, str]:
    *given, between = params
    values = tuple(value for value in given if isinstance(value, InputOutputParam))
    if (
        not values
        or len(values) < len(given)
        or len({value.api_name for value in values}) > 1
        or not isinstance(between, ValueParam)
        or between.value not in _THAN
    ):
        msg = (
            "DistinctArgumentRelation takes one or more InputOutputParam of one function, and "
            f"between what they differ ({', '.join(_THAN)}), got {params!r}"
        )
        raise TypeError(msg)
    return values, str(between.value)
