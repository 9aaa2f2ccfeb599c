"""The names of functions: 0.x names them by place of definition, the documents as documented.

A rule stands here only where it holds for all that it matches: a package offers what its module
defines. For the rest the name by place of definition is the name, and matches as it stands.
"""

from __future__ import annotations

import re
from typing import Any

_RULES = (
    (r"torch\.nn\.modules\.[a-z_]+\.(?=[A-Z])", "torch.nn."),
    (r"torch\.optim\.(?!lr_scheduler\.|swa_utils\.)[a-z]\w*\.(?=[A-Z])", "torch.optim."),
    (r"torch\.nn\.parallel\.(?:distributed|data_parallel)\.(?=[A-Z])", "torch.nn.parallel."),
    (r"torch\.nn\.utils\.clip_grad\.(?=[a-z])", "torch.nn.utils."),
    (r"torch\.utils\.data\.(?:dataloader|dataset|sampler)\.(?=[A-Z])", "torch.utils.data."),
    (r"torch\.distributed\.distributed_c10d\.(?=[a-z]\w*$)", "torch.distributed."),
    (r"torch\.amp\.grad_scaler\.(?=GradScaler\.)", "torch."),
    (r"torch\.(?:_tensor\.Tensor|_C\.TensorBase)\.(?!_)", "torch.Tensor."),
    (r"torch\._VariableFunctionsClass\.(?!_)", "torch."),
)
_OFFERED = tuple((re.compile(pattern), offered) for pattern, offered in _RULES)
# Every optimizer of torch has these from its base class, or overrides them.
_OVERRIDE = re.compile(
    r"torch\.optim\.(?!Optimizer\.)[A-Z]\w*\."
    r"(step|zero_grad|add_param_group|state_dict|load_state_dict)"
)
_BASE = "torch.optim.Optimizer"


def documented_name(function: str) -> str:
    """Return the documented name of a function, or the given one where no rule derives it.

    >>> documented_name("torch.optim.sgd.SGD.step")
    'torch.optim.SGD.step'
    >>> documented_name("torch.optim.lr_scheduler.StepLR.step")
    'torch.optim.lr_scheduler.StepLR.step'
    """
    for pattern, offered in _OFFERED:
        if found := pattern.match(function):
            return f"{offered}{function[found.end() :]}"
    return function


def function_fields(function: str) -> dict[str, Any]:
    """Return what a `function` record says of a function that 0.x named."""
    name = documented_name(function)
    fields: dict[str, Any] = {"name": name}
    if override := _OVERRIDE.fullmatch(name):
        fields["bases"] = [f"{_BASE}.{override[1]}"]
    if name != function:
        fields["aliases"] = [function]
    return fields
