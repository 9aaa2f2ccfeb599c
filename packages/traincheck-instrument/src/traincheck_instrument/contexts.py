"""The contexts that are active at a call: what differs from the default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from traincheck_instrument.encode import Encoder


def active_contexts(encoder: Encoder) -> dict[str, Any]:
    """Return the contexts of this thread that are not as they are by default."""
    contexts: dict[str, Any] = {}
    if not torch.is_grad_enabled():
        contexts["grad_mode"] = False
    if torch.is_inference_mode_enabled():
        contexts["inference_mode"] = True
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            contexts["autocast.dtype"] = encoder.dtype(torch.get_autocast_dtype(device))
            contexts["autocast.device_type"] = device
    return contexts
