"""Records what a PyTorch training program does, without changing it.

Offers the marks that stand in a program; without a recording they do nothing. Imports no torch.
"""

from traincheck_instrument.__about__ import __version__
from traincheck_instrument.annotations import annotate
from traincheck_instrument.by_hand import record
from traincheck_instrument.marks import (
    annotate_stage,
    evaluation,
    start_eval_step,
    start_step,
    track,
    training_step,
)

__all__ = [
    "__version__",
    "annotate",
    "annotate_stage",
    "evaluation",
    "record",
    "start_eval_step",
    "start_step",
    "track",
    "training_step",
]
