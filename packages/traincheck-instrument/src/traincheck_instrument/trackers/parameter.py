"""The `subclass` tracker: parameters become instances of a subclass of `torch.nn.Parameter`.

The object stays the same, so ties, hooks and the optimizers that hold it stay too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import _foreach_supported_types

Assigned = Callable[[torch.nn.Parameter, str], None]


class TrackedParameter(torch.nn.Parameter):
    """A parameter that tells when one of its attributes is assigned."""

    # Set while installed; a class attribute, because instances must not hold the recorder alive.
    on_assignment: Assigned | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if (tell := TrackedParameter.on_assignment) is not None:
            tell(self, name)


TrackedParameter.__module__ = torch.nn.Parameter.__module__
TrackedParameter.__qualname__ = torch.nn.Parameter.__qualname__


def convert(parameter: torch.nn.Parameter) -> None:
    """Make a plain parameter a tracked one, in place."""
    if type(parameter) is torch.nn.Parameter:
        parameter.__class__ = TrackedParameter


class ParameterPatches:
    """What torch must know so that a tracked parameter is treated like any other."""

    def __init__(self, on_assignment: Assigned) -> None:
        self._on_assignment = on_assignment
        self._original_new: Any = None

    def install(self) -> None:
        """Let torch take tracked parameters for parameters; may be called twice."""
        if self._original_new is not None:
            return
        self._original_new = vars(torch.nn.Parameter)["__new__"]
        original = torch.nn.Parameter.__new__

        def new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:  # noqa: FBT001, FBT002 - torch's signature
            # torch refuses instances of a subclass as data, other than Parameter itself.
            if isinstance(data, TrackedParameter):
                data = data.detach()
            return original(cls, data, requires_grad)

        torch.nn.Parameter.__new__ = new_parameter  # type: ignore[method-assign]
        # Optimizers take their foreach implementation for the listed types only.
        _foreach_supported_types.append(TrackedParameter)
        TrackedParameter.on_assignment = self._on_assignment

    def uninstall(self) -> None:
        """Put back what was there; may be called twice."""
        if self._original_new is None:
            return
        torch.nn.Parameter.__new__ = self._original_new  # type: ignore[method-assign]
        self._original_new = None
        _foreach_supported_types.remove(TrackedParameter)
        TrackedParameter.on_assignment = None
