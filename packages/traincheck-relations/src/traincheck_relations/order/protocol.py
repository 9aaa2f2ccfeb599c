"""The training protocol: which calls make up a training step, and what stands for what.

Claims about the order and the number of calls are made about these only. Layers, losses and data
loading come in whatever order a model has; that `backward` comes before `step` is a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.api import Requirements
from traincheck_relations.conditions.properties import optimizer_name
from traincheck_relations.value import payload
from traincheck_trace_schema.invariants import APIParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from traincheck_relations.api import Call
    from traincheck_trace_schema.invariants import Param

ZERO_GRAD = "torch.optim.Optimizer.zero_grad"
BACKWARD = "torch.Tensor.backward"
OPTIMIZER_STEP = "torch.optim.Optimizer.step"
# What no training does without: that one of them is never called is a finding. Of others it may
# mean that the program has no such thing.
CORE = frozenset((ZERO_GRAD, BACKWARD, OPTIMIZER_STEP))

# What does the same, or does it on behalf: a scaler leaves out the optimizer's step where gradients
# overflowed, which is right, so the scaler's step is what counts.
_STAND_INS: Mapping[str, tuple[str, ...]] = {
    ZERO_GRAD: ("torch.nn.Module.zero_grad",),
    BACKWARD: ("torch.autograd.backward",),
    OPTIMIZER_STEP: ("torch.GradScaler.step",),
}
_STANDS_FOR: Mapping[str, str] = {each: name for name, of in _STAND_INS.items() for each in of}
_TAKES_OPTIMIZER = frozenset(("torch.GradScaler.step", "torch.GradScaler.unscale_"))

# The last part of a function's name tells its kind, also in frameworks that wrap these calls.
_KINDS: Mapping[str, str] = {
    "zero_grad": "zero_grad",
    "scale": "scale",
    "backward": "backward",
    "unscale_": "unscale_",
    "clip_grad_norm_": "clip",
    "clip_grad_value_": "clip",
    "step": "step",
    "update": "update",
    "update_parameters": "update",
}
SCHEDULER_STEP = "scheduler_step"
_MODE = frozenset(("eval", "train"))  # the model's, which a program may set as often as it likes
_IN_A_STEP = (*dict.fromkeys(_KINDS.values()), SCHEDULER_STEP)  # as they usually come
_DUE = frozenset(  # what has to come between two calls of what
    (
        ("zero_grad", "backward"),
        ("zero_grad", "step"),
        ("step", "zero_grad"),
        ("step", "backward"),
    )
)
_NO_TRAINING = ("torch.profiler.",)  # they have a `step`, too

# Of which kinds the order is a rule. A scheduler may step before gradients are cleared or after.
_RULES = frozenset(
    frozenset(pair)
    for pair in (
        ("zero_grad", "backward"),
        ("zero_grad", "step"),
        ("scale", "backward"),
        ("backward", "unscale_"),
        ("backward", "clip"),
        ("backward", "step"),
        ("unscale_", "clip"),
        ("unscale_", "step"),
        ("clip", "step"),
        ("step", "update"),
        ("step", SCHEDULER_STEP),
    )
)


def protocol_function(call: Call) -> str | None:
    """Return the function of the protocol that a call is one of, by its most general name."""
    for name in call.names:
        if name in _STANDS_FOR:
            return _STANDS_FOR[name]
    function = call.documented[-1]
    return function if is_of_update(function) else None


def is_of_update(function: str) -> bool:
    """Whether a function has a place in the update of parameters."""
    return kind_of(function) is not None


def sets_mode(function: str) -> bool:
    """Whether a function puts modules into training or evaluation mode."""
    return function.rpartition(".")[2] in _MODE


def are_related(one: str, other: str) -> bool:
    """Whether the order of two functions of the protocol can be a rule."""
    return frozenset((kind_of(one), kind_of(other))) in _RULES


def is_due(first: str, second: str) -> bool:
    """Whether it can be a rule that one function follows each call of another.

    How many gradients a program adds up, how often it clips, how many schedulers it has, is its own
    affair. That it clears gradients and makes a step in turn is not.
    """
    return (kind_of(first), kind_of(second)) in _DUE


def place(function: str) -> tuple[int, str]:
    """Return what sorts functions in the order in which a step usually has them."""
    kind = kind_of(function)
    return len(_IN_A_STEP) if kind is None else _IN_A_STEP.index(kind), function


def counted_names(functions: Iterable[str]) -> dict[str, list[str]]:
    """Return by its name, for each function that counts as a call of one of these, which."""
    names: dict[str, list[str]] = {}
    for function in functions:
        for name in (function, *_STAND_INS.get(function, ())):
            names.setdefault(name, []).append(function)
    return names


def requirements(functions: Iterable[str]) -> Requirements:
    """Say what must be recorded to follow calls of these functions.

    A scheduler makes its first step while it is made, which is told by what is around that step.
    """
    names = [*counted_names(functions)]
    made = [f"{_owner(name)}.__init__" for name in names if kind_of(name) == SCHEDULER_STEP]
    return Requirements(
        functions={
            name: frozenset(("optimizer",) if name in _TAKES_OPTIMIZER else ())
            for name in (*names, *made)
        }
    )


def owner_of(call: Call) -> str | None:
    """Return the name of the tracked object that a call is about, as "optimizer0", if one is.

    A scaler's calls are about the optimizer that they are given. Those of a module are about any
    optimizer that holds its parameters.
    """
    if (name := optimizer_name(call)) is not None:
        return name
    given = payload((call.begin.get("args") or {}).get("optimizer"), "object").get("name")
    return given if isinstance(given, str) else None


def function_name(param: Param) -> str:
    """Return the function that a param is about.

    Raises:
        TypeError: It is no `APIParam` for any call.
    """
    if not isinstance(param, APIParam) or not param.is_any_call:
        raise TypeError(f"expected an APIParam for any call, got {param!r}")
    return param.api_full_name


def _owner(method: str) -> str:
    """Return the class that a method is of."""
    return method.rpartition(".")[0]


def kind_of(function: str) -> str | None:
    """Return what a function does in a step, as "clip"; None if that is not known."""
    if function.startswith(_NO_TRAINING):
        return None
    kind = _KINDS.get(function.rpartition(".")[2])
    return SCHEDULER_STEP if kind == "step" and "scheduler" in function.lower() else kind
