"""The source layer: reads a training script, and puts the marks of steps and stages into it."""

from traincheck_instrument.source.rewriting import (
    Findings,
    FoundLoop,
    FoundName,
    Rewritten,
    rewrite,
)
from traincheck_instrument.source.tracking import BoundNames

__all__ = ["BoundNames", "Findings", "FoundLoop", "FoundName", "Rewritten", "rewrite"]
