"""Why calls of the training protocol come in the wrong order or number, by what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.order.protocol import SCHEDULER_STEP, kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Of two functions the one that stands first here is more often the one out of place.
_CAUSES: Mapping[str, str] = {
    SCHEDULER_STEP: (
        "at which level of the loop the scheduler steps: it belongs after the optimizer's step, "
        "under the same condition, and not to each micro-batch; whether a framework calls it once "
        "more, so that the learning rate changes too fast"
    ),
    "unscale_": (
        "whether scaler.unscale_(optimizer) stands before gradients are clipped or looked at: "
        "until then they are multiplied by the loss scale; whether a condition skips it"
    ),
    "clip": (
        "where gradients are clipped: it belongs after backward (and unscale_) and before the "
        "optimizer's step, after which it does nothing; whether a condition skips it"
    ),
    "scale": (
        "whether the loss is scaled before backward (scaler.scale(loss)): the scaler's step "
        "divides the gradients by the scale whether it was or not"
    ),
    "update": (
        "whether the update stands once after each step of the optimizer, under the same condition"
    ),
    "zero_grad": (
        "where in the loop gradients are cleared: it belongs once before the batches whose "
        "gradients are to add up (more often, what earlier batches gave is lost, and without it "
        "gradients add up over the steps); whether a condition skips it; whether the optimizer or "
        "model that is cleared is the one that is trained"
    ),
    "backward": (
        "whether a condition, an early continue or an exception that is caught skips the backward "
        "pass; whether it runs twice, as by a framework and by hand"
    ),
    "step": (
        "whether a condition (accumulation, a batch that is left out) skips the optimizer's step; "
        "whether a framework makes it as well; at which level of the loop it stands"
    ),
}


def usual_causes(functions: Collection[str]) -> str:
    """Say what to look at where these functions are called in another order or number."""
    kinds = set(map(kind_of, functions))
    for kind, text in _CAUSES.items():
        if kind in kinds:
            return text
    return (
        f"in which order, and at which level of the loop, {' and '.join(functions)} are called; "
        "whether a condition or an early return skips one of them"
    )
