"""Records what a PyTorch training program does, without changing it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traincheck_instrument.marks import (
        annotate_stage,
        evaluation,
        start_eval_step,
        start_step,
        track,
    )

__all__ = ["annotate_stage", "evaluation", "start_eval_step", "start_step", "track"]


def __getattr__(name: str) -> Any:
    """Import the marks, and with them torch, when one is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("traincheck_instrument.marks"), name)
