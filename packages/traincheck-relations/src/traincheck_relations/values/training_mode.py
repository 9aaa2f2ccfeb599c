"""`TrainingModeRelation`: what tells a function whether the model trains is right for the occasion.

Such are the argument `training` of `torch.nn.functional.dropout`, the training flag of the module
that is called, and `dropout_p` of attention, which is zero where it is off. A model *learns* in a
call in training, with gradients enabled and, if the call is given a `weight`, one that requires a
gradient. It learns nothing in a module of which no parameter requires a gradient, as a backbone
that is frozen, nor in one that is no part of a tracked model, as a teacher. Other calls say nothing
unless the claim is about them:

| mode | claims |
| --- | --- |
| `learning` | on where the model learns |
| `stage` | and off in evaluation, testing and inference |
| `grad_mode` | and off where gradients are disabled, in programs without a stage of evaluation |
| `frozen` | off where the weight, in training, requires no gradient |
| `disabled` | off where gradients are disabled, of the modules of one model |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import attrs

from traincheck_relations.api import (
    Call,
    Event,
    Interests,
    Monitor,
    Proposer,
    Requirements,
    RunState,
)
from traincheck_relations.conditions.properties import FORWARD
from traincheck_relations.of_model import is_of_model, model_in, of_model
from traincheck_relations.per_call import CallClaim, PerCallMonitor, Returned, Verdict
from traincheck_relations.value import payload
from traincheck_relations.values.call_values import EVALUATES, arguments_of, has_gradients, value_of
from traincheck_relations.values.learning_modules import LearningModules
from traincheck_trace_schema.invariants import InputOutputParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_FLAG = "training"  # what torch calls the flag, of modules and as an argument
_WEIGHT = "weight"
_SELF = "self"
_TORCH = "torch."  # whose rates are those of dropout; a number of the program's own may be anything
# What they are given becomes the mode.
_SETS_MODE = frozenset(("torch.nn.Module.train", "torch.nn.Module.requires_grad_"))
# It runs what it is given without gradients, and once more with them in the backward pass.
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_OVERRIDES = 2  # a base method says less than its override: so many must do the same

_FLAG_OF_MODULES = InputOutputParam(
    name=_SELF,
    type="torch.nn.Module",
    additional_path=(_FLAG,),
    api_name=FORWARD,
    is_input=True,
)

_Key: TypeAlias = "tuple[str, str]"  # function, argument


class TrainingModeRelation:
    """A flag of training, or a rate of dropout, is on where the model learns, and off elsewhere."""

    name: ClassVar[str] = "TrainingModeRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ModeProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        given, mode, _ = _parts(params)
        arguments = frozenset[str]() if given.name == _SELF else {given.name, _WEIGHT}
        functions = {FORWARD: frozenset[str](), given.api_name: frozenset(arguments)}
        if "grad_mode" in _EXPECTED[mode]:
            functions[_CHECKPOINT] = frozenset()
        return Requirements(
            functions=functions,
            variables={"parameter": frozenset(("requires_grad",))},
            contexts=frozenset(("grad_mode", "inference_mode")),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        modules = LearningModules()
        return PerCallMonitor([_claim(one, modules) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        given, mode, _ = _parts(params)
        whose = f"Each call of {given.api_name} has {given.name}"
        on, off = ("True", "False") if given.name == _FLAG else ("on", "off")
        if given.name == _SELF:
            whose = "Each module" if given.api_name == FORWARD else f"Each {_type_of(given)}"
            on, off = "is in training mode", "is in evaluation mode"
        return f"{whose} {_CLAIMS[mode].format(on=on, off=off)}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        given, mode, _ = _parts(params)
        if mode == "frozen":
            return (
                "what calls train() after the module was frozen: model.train() puts every part of "
                "it into training mode again; whether eval() is called on the frozen part after "
                "that"
            )
        own = (
            ""
            if given.name == _SELF
            else f"whether the module that calls {given.api_name} passes "
            f"its own training flag on, and not a constant, as {given.name}; "
        )
        return (
            f"{own}which eval() has no train() after it, and which evaluation no eval() before it; "
            "whether they are called on this module, or on another one or a wrapper"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        del params
        return 0.8


class ModeProposer:
    """Proposes what was seen to follow the mode."""

    interests = Interests(kinds=frozenset(("call_begin",)))

    def __init__(self) -> None:
        self._modules = LearningModules()
        self._seen: defaultdict[_Key, Counter[tuple[str, bool]]] = defaultdict(Counter)
        self._learning_modules: set[str] = set()  # the forward methods of modules that train
        self._evaluated: set[str] = set()  # models of which a part was in evaluation mode rightly

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if event.call is not None and not _SETS_MODE.intersection(event.call.names):
            self._take(_Occasion(event.call, event.stage, event.window.step, event.run))

    def _take(self, one: _Occasion) -> None:
        call = one.call
        modes: list[str] | None = None
        for name, value in arguments_of(call).items():
            if isinstance(value, bool) or (
                isinstance(value, int | float) and call.function.startswith(_TORCH)
            ):
                if modes is None:
                    modes = list(_modes(one, self._modules))
                for mode in modes:
                    self._seen[call.function, name][mode, bool(value)] += 1
        if (
            FORWARD in call.names
            and call.function not in self._learning_modules
            and _is_training(call)
            and "learning" in _modes(one, self._modules)
        ):
            self._learning_modules.add(call.function)
        if FORWARD in call.names and not has_gradients(call) and not _is_training(call):
            model = one.run.model()
            if model is not None and "grad_mode" in _modes(one, self._modules):
                self._evaluated.add(model)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for (function, name), seen in sorted(self._seen.items()):
            given = InputOutputParam(name=name, type="bool", api_name=function, is_input=True)
            for mode in _followed(name, seen):
                yield given, ValueParam(name="mode", value=mode)
        if len(self._learning_modules) >= _OVERRIDES:
            yield _FLAG_OF_MODULES, ValueParam(name="mode", value="learning")
        for model in sorted(self._evaluated):
            yield _FLAG_OF_MODULES, ValueParam(name="mode", value="disabled"), of_model(model)


@attrs.frozen
class _Occasion:
    """A call, and where in a run it was made."""

    call: Call
    stage: str
    step: int
    run: RunState


class _Judge:
    """Judges a call by the mode in which it was made."""

    def __init__(self, params: Params, modules: LearningModules) -> None:
        self._modules = modules
        self._given, mode, self._model = _parts(params)
        self._expected = _EXPECTED[mode]

    def __call__(self, one: Returned) -> Verdict | None:
        """Say whether what is given is right for the mode."""
        value = value_of(self._given, one.call, one.end)
        if not isinstance(value, bool | int | float):
            return None
        if self._model is not None and self._model != one.run.model():
            return None
        occasion = _Occasion(one.call, one.stage, one.step, one.run)
        for mode in _modes(occasion, self._modules):
            if (expected := self._expected.get(mode)) is not None:
                if bool(value) is expected:
                    return Verdict(held=True)
                how = f"with {self._given.name} {value}"
                if self._given.name == _SELF:
                    how = f"in {'training' if value else 'evaluation'} mode"
                happened = f"{one.call.function} was called {how} {_WHERE[mode]}"
                return Verdict(held=False, happened=happened)
        return None


def _claim(params: Params, modules: LearningModules) -> CallClaim:
    given, *_ = _parts(params)
    judged = "call.module." if given.name == _SELF else f"call.arg.{given.name}"
    return CallClaim(given.api_name, _Judge(params, modules), judged=(judged,))


_EXPECTED: Mapping[str, Mapping[str, bool]] = {
    "learning": {"learning": True},
    "stage": {"learning": True, "stage": False},
    "grad_mode": {"learning": True, "grad_mode": False},
    "frozen": {"frozen": False},
    "disabled": {"grad_mode": False},
}
# With what stands for on and off.
_CLAIMS: Mapping[str, str] = {
    "learning": "{on} whenever the model learns",
    "stage": "{on} whenever the model learns, and {off} in evaluation",
    "grad_mode": "{on} whenever the model learns, and {off} where gradients are disabled",
    "frozen": "{off} where its weight is frozen",
    "disabled": "{off} where gradients are disabled",
}
_WHERE: Mapping[str, str] = {
    "learning": "while the model learns",
    "stage": "in evaluation",
    "grad_mode": "where gradients are disabled",
    "frozen": "though its weight is frozen",
}


def _modes(one: _Occasion, modules: LearningModules) -> Iterator[str]:
    """Yield the modes in which a call is made; none before the first step, but in evaluation."""
    call = one.call
    evaluates, may_learn = one.stage in EVALUATES, has_gradients(call)
    if not modules.is_tracked(one.run, call):
        return
    if evaluates:
        yield "stage"
    if not may_learn and (one.step >= 0 or evaluates) and not _is_checkpointed(call):
        yield "grad_mode"
    if evaluates or not may_learn or one.step < 0:
        return
    weight = payload(arguments_of(call).get(_WEIGHT), "tensor")
    if weight and not weight.get("requires_grad"):
        yield "frozen"
    elif modules.may_learn(one.run, call):
        yield "learning"


def _is_checkpointed(call: Call) -> bool:
    return any(_CHECKPOINT in one.names for one in call.around())


def _followed(name: str, seen: Counter[tuple[str, bool]]) -> Iterator[str]:
    """Yield the modes that an argument follows, as far as was seen."""
    if name == _FLAG and seen["frozen", False]:
        yield "frozen"
    if not seen["learning", True]:
        return
    for mode in ("stage", "grad_mode"):
        if seen[mode, False] and (name == _FLAG or _is_exact(seen, mode)):
            yield mode
            return
    # Only of the flag is it known what it means: another argument may just be a constant.
    if name == _FLAG:
        yield "learning"


def _is_exact(seen: Counter[tuple[str, bool]], mode: str) -> bool:
    return not seen["learning", False] and not seen[mode, True]


def _is_training(call: Call) -> bool:
    attributes = payload(call.begin.get("self"), "object").get("attributes", {})
    return attributes.get(_FLAG) is True


def _type_of(given: InputOutputParam) -> str:
    """Return the type of module whose method is meant."""
    return given.api_name.rpartition(".")[0]


def _parts(params: Params) -> tuple[InputOutputParam, str, str | None]:
    """Return what is given, the mode, and of which model it is claimed; None: of any."""
    given, mode, *models = params
    if (
        not isinstance(given, InputOutputParam)
        or not isinstance(mode, ValueParam)
        or mode.value not in _EXPECTED
        or len(models) > 1
        or not all(map(is_of_model, models))
    ):
        msg = f"TrainingModeRelation takes an InputOutputParam and a mode, got {params!r}"
        raise TypeError(msg)
    return given, str(mode.value), model_in(models)
