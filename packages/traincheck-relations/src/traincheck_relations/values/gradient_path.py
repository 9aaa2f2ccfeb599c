"""`GradientPathRelation`: in each training step gradients can flow back through a module once.

A discriminator is called with real data, with generated data that is detached, and, in the step of
the generator, with data that leads back to the generator. Only the last requires a gradient; if no
call in a step has such an input, the generator learns nothing from it.

Occasion: a training step, ended by the next, in which a module of a tracked model is called twice
or more with gradients enabled, and in which each optimizer stepped: a critic may learn several
times before the generator does. It holds if one of the calls is given what requires a gradient.
Claims are about one module, by its name: a program that has none of that name gives no occasion.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import attrs

from traincheck_relations.api import (
    Event,
    EventMonitor,
    Example,
    Interests,
    Monitor,
    Proposer,
    Requirements,
)
from traincheck_relations.conditions.properties import (
    FORWARD,
    is_in_tracked,
    object_name,
    run_properties,
)
from traincheck_relations.occasion import position_of, records_of
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.values.call_values import (
    EVALUATES,
    arguments_of,
    has_gradients,
    tensors_in,
)
from traincheck_trace_schema.invariants import InputOutputParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Call, Gap

_ENOUGH_CALLS = 2  # in one step: with a single one, nothing is detached on purpose

_Inputs: TypeAlias = "tuple[InputOutputParam, ...]"


class GradientPathRelation:
    """In each training step a module is given, once or more, what requires a gradient."""

    name: ClassVar[str] = "GradientPathRelation"
    group: ClassVar[str] = "training_step"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return PathProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        inputs, _ = _parts(params)
        names = frozenset(one.name for one in inputs)
        return Requirements(
            functions={inputs[0].api_name: names, OPTIMIZER_STEP: frozenset()},
            variables={"optimizer": frozenset(("lr",))},
            contexts=frozenset(("grad_mode", "inference_mode")),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return PathMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        _, module = _parts(params)
        return f"In each training step {module} is given, once or more, what requires a gradient"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _, module = _parts(params)
        return (
            f"what detaches what {module} is given, in the turn that should learn through it: "
            "detach, no_grad, .data (of models that learn in turn, it is detached in the turn of "
            "the other one only); whether the model before it is frozen"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        del params
        return 0.7


class PathProposer:
    """Proposes modules that are called in both ways in one step."""

    interests = Interests(kinds=frozenset(("call_begin",)), functions=frozenset((FORWARD,)))

    def __init__(self) -> None:
        self._ways: defaultdict[tuple[str, str], set[bool]] = defaultdict(set)
        self._step: dict[tuple[str, str], tuple[int, int]] = {}  # process and step of the ways
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None or not _learns(event, call):
            return
        module = object_name(call)
        if module is None or is_in_tracked(call):
            return
        key, step = (call.function, module), (event.process, event.window.step)
        if self._step.get(key) != step:
            self._step[key] = step
            self._ways[key].clear()
        names = tuple(name for name, value in arguments_of(call).items() if any(tensors_in(value)))
        self._ways[key].add(_requires_gradient(call, names))
        if len(self._ways[key]) > 1:
            self._found.setdefault(key, names)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for (function, module), names in sorted(self._found.items()):
            inputs = (
                InputOutputParam(
                    name=name,
                    type="torch.Tensor",
                    additional_path=("requires_grad",),
                    api_name=function,
                    is_input=True,
                )
                for name in names
            )
            yield *inputs, ValueParam(name="module", value=module)


@attrs.define(eq=False)
class _Step:
    """What was seen of a module in the step that goes on."""

    calls: int = 0
    has_path: bool = False
    last: Event | None = None


class PathMonitor(EventMonitor):
    """Judges a step when the next one begins."""

    def __init__(self, params: Sequence[Params]) -> None:
        self._claims: dict[tuple[str, str], list[tuple[int, tuple[str, ...]]]] = {}
        for index, claim in enumerate(params):
            inputs, module = _parts(claim)
            names = tuple(one.name for one in inputs)
            self._claims.setdefault((inputs[0].api_name, module), []).append((index, names))
        self._steps: defaultdict[int, dict[int, _Step]] = defaultdict(dict)  # process, claim
        # By process: the number of the step that goes on, and whether nothing of it is missing.
        self._current: dict[int, tuple[int, bool]] = {}
        # By process: the optimizers, each with the ids of its groups; and those that stepped.
        self._optimizers: defaultdict[int, dict[int, str]] = defaultdict(dict)
        self._stepped: defaultdict[int, set[str | None]] = defaultdict(set)
        functions = frozenset(function for function, _ in self._claims) | {OPTIMIZER_STEP}
        kinds = frozenset(("call_begin", "step", "var"))
        self.interests = Interests(kinds=kinds, functions=functions)

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        if event.kind == "step":
            return self._end_step(event)
        if event.kind == "var":
            self._take_optimizer(event)
            return ()
        call = event.call
        if call is not None and OPTIMIZER_STEP in call.names:
            self._stepped[event.process].add(object_name(call))
        elif call is not None and _learns(event, call):
            self._take(event, call)
        return ()

    def on_gap(self, gap: Gap) -> None:
        """Take note that the step of the process is not whole."""
        number, _ = self._current.get(gap.process, (-1, False))
        self._current[gap.process] = number, False

    def _take_optimizer(self, event: Event) -> None:
        record = event.record
        if record["role"] == "optimizer":
            groups = self._optimizers[event.process]
            groups.pop(record["id"], None)
            if event.after is not None:
                groups[record["id"]] = event.after.names[0].partition(".")[0]

    def _take(self, event: Event, call: Call) -> None:
        module = object_name(call)
        for name in call.names if module is not None else ():
            for index, inputs in self._claims.get((name, str(module)), ()):
                step = self._steps[event.process].setdefault(index, _Step())
                step.calls += 1
                step.has_path |= _requires_gradient(call, inputs)
                step.last = event

    def _end_step(self, event: Event) -> Iterator[Example]:
        number = event.window.step
        current, is_whole = self._current.get(event.process, (-1, False))
        if current == number:
            return  # the next micro-batch of it, or evaluation in it
        self._current[event.process] = number, True
        stepped = self._stepped.pop(event.process, set())
        is_whole &= stepped.issuperset(self._optimizers[event.process].values())
        for index, step in self._steps.pop(event.process, {}).items():
            if is_whole and step.calls >= _ENOUGH_CALLS and step.last is not None:
                yield _example(index, step, step.last)


def _example(index: int, step: _Step, last: Event) -> Example:
    call = last.call
    function = "" if call is None else call.function
    what = f"none of the {step.calls} calls of {function} in the step"
    return Example(
        param=index,
        held=step.has_path,
        context=run_properties(last),
        at=position_of(last, call),
        evidence=partial(records_of, last),
        happened="" if step.has_path else f"{what} was given what requires a gradient",
    )


def _learns(event: Event, call: Call) -> bool:
    return event.stage not in EVALUATES and has_gradients(call)


def _requires_gradient(call: Call, names: Sequence[str]) -> bool:
    given = arguments_of(call)
    return any(
        tensor.get("requires_grad") for name in names for tensor in tensors_in(given.get(name))
    )


def _parts(params: Params) -> tuple[_Inputs, str]:
    *given, module = params
    inputs = tuple(one for one in given if isinstance(one, InputOutputParam))
    if (
        not inputs
        or len(inputs) < len(given)
        or len({one.api_name for one in inputs}) > 1
        or not isinstance(module, ValueParam)
        or not isinstance(module.value, str)
    ):
        msg = (
            "GradientPathRelation takes arguments of one function, and the name of a module, got "
            f"{params!r}"
        )
        raise TypeError(msg)
    return inputs, module.value
