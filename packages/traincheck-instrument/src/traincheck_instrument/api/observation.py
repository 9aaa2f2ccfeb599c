"""The points at which variables are looked at: the calls that are meant to change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_EVERYTHING = ("data", "grad", "requires_grad")
# Parameters' data is looked at only where it may change: reading it all costs the most.
_GRADIENTS = ("grad", "requires_grad")

_POINTS = {
    "torch.optim.Optimizer.step": ("step", _EVERYTHING),
    "torch.optim.Optimizer.zero_grad": ("zero_grad", _GRADIENTS),
    "torch.nn.Module.zero_grad": ("zero_grad", _GRADIENTS),
    "torch.Tensor.backward": ("backward", _GRADIENTS),
    "torch.autograd.backward": ("backward", _GRADIENTS),
    "torch.nn.utils.clip_grad_norm_": ("clip", _GRADIENTS),
    "torch.nn.utils.clip_grad_value_": ("clip", _GRADIENTS),
    "torch.amp.GradScaler.unscale_": ("unscale", _GRADIENTS),
    "torch.amp.GradScaler.step": ("scaler_step", _EVERYTHING),
    "torch.nn.Module.load_state_dict": ("load", _EVERYTHING),
    "torch.optim.Optimizer.load_state_dict": ("load", _EVERYTHING),
}


def observation_of(
    names: Iterable[str], asked: frozenset[str] | None
) -> tuple[str | None, tuple[str, ...]]:
    """Return what a function with these names does to variables, and the attributes to look at.

    `asked`: the functions that a plan wants to be looked around; None: all of the points above. Of
    points that do the same all are asked for with one: only the outermost of them is looked around,
    as it was when all were.
    """
    deeds = None if asked is None else {_POINTS[name][0] for name in asked if name in _POINTS}
    for name in names:
        point = _POINTS.get(name)
        if point is not None and (deeds is None or point[0] in deeds):
            return point
        if asked is not None and name in asked:
            return name, _EVERYTHING
    return None, ()
