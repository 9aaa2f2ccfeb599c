"""`ConstantArgumentRelation`: what decides how a loss or attention computes stays as it is.

How elements are reduced, which label is left out, that attention is causal: a program decides so
once, and another way to compute runs as well and trains something else. What a call leaves out has
its default. The decision is that of one program: such a claim is made of models whose parameters
have the same names; of others there is no occasion.

Judged is each call in which the model learns.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import (
    Event,
    EventMonitor,
    Example,
    Interests,
    Monitor,
    Proposer,
    Requirements,
)
from traincheck_relations.conditions.properties import run_properties
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.of_model import is_of_model, model_in, of_model
from traincheck_relations.values.call_values import EVALUATES, argument_of, has_gradients
from traincheck_trace_schema.invariants import InputOutputParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Call
    from traincheck_trace_schema.values import Json, Scalar

_FUNCTIONAL = "torch.nn.functional."
# A function that has one of these decides by its arguments what is computed.
_DECIDES = frozenset(("reduction", "is_causal"))
# What is tuned from run to run, as a smoothing or a temperature, is a float.
_DECISIONS = (bool, int, str)


class ConstantArgumentRelation:
    """A loss is reduced as it was, attention masked as it was."""

    name: ClassVar[str] = "ConstantArgumentRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ConstantArgumentProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        argument, _, _ = _parts(params)
        return Requirements(
            functions={argument.api_name: frozenset((argument.name,))},
            variables={"parameter": frozenset(("requires_grad",))},
            contexts=frozenset(("grad_mode", "inference_mode")),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return ConstantArgumentMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        argument, value, _ = _parts(params)
        return f"Each call of {argument.api_name} is given {argument.name} {value!r}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        argument, value, _ = _parts(params)
        of_reduction = "; whether averages over batches of unequal size are averaged again"
        return (
            f"who decides {argument.name} ({value!r} where it was learnt): a wrapper that does not "
            "pass it on, a default that changed with a version, a setting"
            f"{of_reduction if argument.name == 'reduction' else ''}"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        del params
        return 0.6


class ConstantArgumentProposer:
    """Proposes the arguments that were the same in all calls in which the model learnt."""

    interests = Interests(kinds=frozenset(("call_begin",)))

    def __init__(self) -> None:
        self._values: defaultdict[tuple[str, str, str], set[Scalar]] = defaultdict(set)

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call, model = event.call, event.run.model()
        if call is None or model is None or not _decides(call) or not _learns(event, call):
            return
        for name in call.defaults:
            value = argument_of(call, name)
            if isinstance(value, _DECISIONS):
                self._values[model, call.function, name].add(value)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for (model, function, name), values in sorted(self._values.items()):
            if len(values) == 1:
                argument = InputOutputParam(
                    name=name,
                    type=type(next(iter(values))).__name__,
                    additional_path=(),
                    api_name=function,
                    is_input=True,
                )
                yield (
                    argument,
                    ValueParam(name="value", value=values.pop()),
                    of_model(model),
                )


class ConstantArgumentMonitor(EventMonitor):
    """Judges each call when it begins."""

    def __init__(self, params: Sequence[Params]) -> None:
        self._claims: defaultdict[str, list[tuple[int, str, Scalar, str]]] = defaultdict(list)
        for index, each in enumerate(params):
            argument, value, model = _parts(each)
            self._claims[argument.api_name].append((index, argument.name, value, model))
        self.interests = Interests(
            kinds=frozenset(("call_begin",)), functions=frozenset(self._claims)
        )

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        call = event.call
        if call is None or not _learns(event, call):
            return ()
        return self._examples(event, call)

    def _examples(self, event: Event, call: Call) -> Iterator[Example]:
        for name in call.names:
            for index, argument, expected, model in self._claims.get(name, ()):
                value = argument_of(call, argument)
                if value is None or model != event.run.model():
                    continue
                held = type(value) is type(expected) and value == expected
                yield Example(
                    param=index,
                    held=held,
                    context=run_properties(event),
                    at=position_of(event, call),
                    evidence=partial(records_of, event),
                    happened="" if held else _happened(call, argument, value),
                )


def _happened(call: Call, argument: str, value: Json) -> str:
    is_given = argument in (call.begin.get("args") or {})
    how = "was given" if is_given else "was left"
    return f"{call.function} {how} {argument} {value!r}{'' if is_given else ', its default'}"


def _decides(call: Call) -> bool:
    return call.function.startswith(_FUNCTIONAL) and not _DECIDES.isdisjoint(call.defaults)


def _learns(event: Event, call: Call) -> bool:
    is_training = event.is_main and event.window.step >= 0 and event.stage not in EVALUATES
    return is_training and has_gradients(call)


def _parts(params: Params) -> tuple[InputOutputParam, Scalar, str]:
    argument, value, model = params
    if (
        not isinstance(argument, InputOutputParam)
        or not argument.is_input
        or not isinstance(value, ValueParam)
        or not is_of_model(model)
    ):
        msg = (
            "ConstantArgumentRelation takes an argument, a value and the ValueParam 'parameters', "
            f"got {params!r}"
        )
        raise TypeError(msg)
    return argument, value.value, str(model_in(params))
