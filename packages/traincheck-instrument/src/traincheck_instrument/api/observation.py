"""The points at which variables are looked at: the calls that are meant to change them."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.variables.wanted import ATTRIBUTES, ROLES, Looks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from traincheck_trace_schema.plan import Plan
    from traincheck_trace_schema.records import Phase

# Parameters' data is looked at only where it may change: reading it all costs the most.
_DATA = ("data",)
_GRADIENT = ("grad",)
_GRADIENTS: Looks = {"parameter": ("grad", "requires_grad")}
_PARAMETERS: Looks = {"parameter": ATTRIBUTES}
_OPTIMIZER: Looks = {"parameter": ATTRIBUTES, "optimizer": None}
_MODEL: Looks = {"parameter": ATTRIBUTES, "buffer": None}
_RATES: Looks = {"optimizer": None, "scheduler": None}
_EVERYTHING: Looks = MappingProxyType(dict.fromkeys(ROLES))


_STEP = "step"  # the deed of an optimizer


@attrs.frozen
class Point:
    """What a function does to variables, as "backward", and what is looked at around it."""

    deed: str
    looks: Looks
    changes: Collection[str] | None = None  # the attributes that it is meant to change; None: any
    trains: bool = attrs.field(init=False)  # whether only a thread does it that trains

    @trains.default
    def _trains(self) -> bool:
        return self.deed in {"backward", "step", "scaler_step"}


_POINTS: Mapping[str, Point] = {
    "torch.optim.Optimizer.step": Point(_STEP, _OPTIMIZER, _DATA),
    "torch.optim.Optimizer.zero_grad": Point("zero_grad", _GRADIENTS, _GRADIENT),
    "torch.nn.Module.zero_grad": Point("zero_grad", _GRADIENTS, _GRADIENT),
    "torch.Tensor.backward": Point("backward", _GRADIENTS, _GRADIENT),
    "torch.autograd.backward": Point("backward", _GRADIENTS, _GRADIENT),
    "torch.nn.utils.clip_grad_norm_": Point("clip", _GRADIENTS, _GRADIENT),
    "torch.nn.utils.clip_grad_value_": Point("clip", _GRADIENTS, _GRADIENT),
    "torch.amp.GradScaler.unscale_": Point("unscale", _GRADIENTS, _GRADIENT),
    "torch.amp.GradScaler.step": Point("scaler_step", _PARAMETERS, _DATA),
    "torch.nn.Module.load_state_dict": Point("load", _MODEL, _DATA),
    "torch.optim.Optimizer.load_state_dict": Point("load", _OPTIMIZER, _DATA),
    "torch.optim.lr_scheduler.LRScheduler.step": Point("schedule", _RATES),
}


def phases_of_sampler(plan: Plan) -> Mapping[str, Collection[Phase]]:
    """Return at which deeds the sampler looks, and in which phases.

    Always when an optimizer has stepped. What a plan only compares is seen as well at another
    point; what a call changes is not, as the sampler does not follow changes.
    """
    phases: dict[str, set[Phase]] = {_STEP: {"end"}}
    for name in plan.observe_before:
        phases.setdefault(_deed_of(name), set()).add("begin")
    for name in plan.observe_after:
        phases.setdefault(_deed_of(name), set()).add("end")
    return phases


def _deed_of(name: str) -> str:
    return _POINTS[name].deed if name in _POINTS else name


def observation_of(names: Iterable[str], asked: frozenset[str] | None) -> Point | None:
    """Return what a function with these names does to variables; None: it is not looked around.

    `asked`: the functions that a plan wants to be looked around; None: all of the points above. Of
    points that do the same all are asked for with one: only the outermost of them is looked around,
    as it was when all were.
    """
    deeds = None if asked is None else {_POINTS[name].deed for name in asked if name in _POINTS}
    for name in names:
        point = _POINTS.get(name)
        if point is not None and (deeds is None or point.deed in deeds):
            return point
        if asked is not None and name in asked:
            return Point(name, _EVERYTHING)
    return None
