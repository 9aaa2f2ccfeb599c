"""`TrainingModeRelation`: what tells a function whether the model trains is right for the occasion.

Such are the argument `training` of `torch.nn.functional.dropout`, the training flag of the module
that is called, and `dropout_p` of attention, which is zero where it is off. A model *learns* in a
call in training, with gradients enabled and, if the call is given a `weight`, one that requires a
gradient. Other calls say nothing unless the claim is about them:

| mode | claims |
| --- | --- |
| `learning` | on where the model learns |
| `stage` | and off in evaluation, testing and inference |
| `grad_mode` | and off where gradients are disabled, in programs without a stage of evaluation |
| `frozen` | off where the weight, in training, requires no gradient |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.conditions.properties import FORWARD
from traincheck_relations.per_call import CallClaim, PerCallMonitor, Returned, Verdict
from traincheck_relations.value import payload
from traincheck_relations.values.call_values import EVALUATES, arguments_of, has_gradients, value_of
from traincheck_trace_schema.invariants import InputOutputParam, Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_relations.api import Call

_FLAG = "training"  # what torch calls the flag, of modules and as an argument
_WEIGHT = "weight"
_OVERRIDES = 2  # a base method says less than its override: so many must do the same

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
        given, _ = _parts(params)
        arguments = frozenset[str]() if given.name == "self" else {given.name, _WEIGHT}
        return Requirements(
            functions={given.api_name: frozenset(arguments)},
            contexts=frozenset(("grad_mode", "inference_mode")),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return PerCallMonitor([_claim(one) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        given, mode = _parts(params)
        return f"Each call of {given.api_name} has {_subject(given)} {_CLAIMS[mode]}"

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        del params
        return 0.8


class ModeProposer:
    """Proposes what was seen to follow the mode."""

    interests = Interests(kinds=frozenset(("call_begin",)))

    def __init__(self) -> None:
        self._seen: defaultdict[_Key, Counter[tuple[str, bool]]] = defaultdict(Counter)
        self._learning_modules: set[str] = set()  # the forward methods of modules that train

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None:
            return
        modes: list[str] | None = None
        for name, value in arguments_of(call).items():
            if isinstance(value, bool | int | float):
                if modes is None:
                    modes = list(_modes(call, event.stage, event.window.step))
                for mode in modes:
                    self._seen[call.function, name][mode, bool(value)] += 1
        if (
            FORWARD in call.names
            and call.function not in self._learning_modules
            and _is_training(call)
            and "learning" in _modes(call, event.stage, event.window.step)
        ):
            self._learning_modules.add(call.function)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for (function, name), seen in sorted(self._seen.items()):
            given = InputOutputParam(name=name, type="bool", api_name=function, is_input=True)
            for mode in _followed(name, seen):
                yield given, ValueParam(name="mode", value=mode)
        if len(self._learning_modules) >= _OVERRIDES:
            yield (
                InputOutputParam(
                    name="self",
                    type="torch.nn.Module",
                    additional_path=(_FLAG,),
                    api_name=FORWARD,
                    is_input=True,
                ),
                ValueParam(name="mode", value="learning"),
            )


class _Judge:
    """Judges a call by the mode in which it was made."""

    def __init__(self, params: Params) -> None:
        self._given, mode = _parts(params)
        self._expected = _EXPECTED[mode]

    def __call__(self, one: Returned) -> Verdict | None:
        """Say whether what is given is right for the mode."""
        value = value_of(self._given, one.call, one.end)
        if not isinstance(value, bool | int | float):
            return None
        for mode in _modes(one.call, one.stage, one.step):
            if (expected := self._expected.get(mode)) is not None:
                if bool(value) is expected:
                    return Verdict(held=True)
                where = f"{_subject(self._given)} {value} {_WHERE[mode]}"
                return Verdict(held=False, happened=f"{one.call.function} was called with {where}")
        return None


def _claim(params: Params) -> CallClaim:
    given, _ = _parts(params)
    judged = "call.module." if given.name == "self" else f"call.arg.{given.name}"
    return CallClaim(given.api_name, _Judge(params), judged=(judged,))


_EXPECTED: Mapping[str, Mapping[str, bool]] = {
    "learning": {"learning": True},
    "stage": {"learning": True, "stage": False},
    "grad_mode": {"learning": True, "grad_mode": False},
    "frozen": {"frozen": False},
}
_CLAIMS: Mapping[str, str] = {
    "learning": "on where the model learns",
    "stage": "on where the model learns and off in evaluation",
    "grad_mode": "on where the model learns and off where gradients are disabled",
    "frozen": "off where its weight is frozen",
}
_WHERE: Mapping[str, str] = {
    "learning": "where the model learns",
    "stage": "in evaluation",
    "grad_mode": "where gradients are disabled",
    "frozen": "though its weight is frozen",
}


def _modes(call: Call, stage: str, step: int) -> Iterator[str]:
    """Yield the modes in which a call is made; none before the first step, but in evaluation."""
    evaluates, may_learn = stage in EVALUATES, has_gradients(call)
    if evaluates:
        yield "stage"
    if not may_learn and (step >= 0 or evaluates):
        yield "grad_mode"
    if evaluates or not may_learn or step < 0:
        return
    weight = payload(arguments_of(call).get(_WEIGHT), "tensor")
    yield "learning" if not weight or weight.get("requires_grad") else "frozen"


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


def _subject(given: InputOutputParam) -> str:
    return "the training flag of its module" if given.name == "self" else given.name


def _parts(params: Params) -> tuple[InputOutputParam, str]:
    given, mode = params
    if (
        not isinstance(given, InputOutputParam)
        or not isinstance(mode, ValueParam)
        or mode.value not in _EXPECTED
    ):
        msg = f"TrainingModeRelation takes an InputOutputParam and a mode, got {params!r}"
        raise TypeError(msg)
    return given, str(mode.value)
