"""What torch's own wrappers hold: the model that the program has written."""

from __future__ import annotations

import sys

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

# Not what classes of the program say that an attribute is.
_attributes_of = vars(torch.nn.Module)["__dict__"].__get__


def without_wrappers(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model inside DistributedDataParallel, DataParallel and `torch.compile`.

    Its parameters keep their names when a program wraps it: `model.fc.weight`, not
    `model.module.fc.weight`, as torch.distributed.checkpoint names them too.
    """
    while (name := _held_as(type(model))) is not None:
        inner = _attributes_of(model)["_modules"].get(name)
        if inner is None:
            break
        model = inner
    return model


def _held_as(cls: type) -> str | None:
    """Return under which name a wrapper of this class holds its model."""
    if issubclass(cls, DistributedDataParallel | DataParallel):
        return "module"
    # Who has not imported the compiler has not used it; the import takes a second.
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    compiled = getattr(compiler, "OptimizedModule", None)
    return "_orig_mod" if compiled is not None and issubclass(cls, compiled) else None
