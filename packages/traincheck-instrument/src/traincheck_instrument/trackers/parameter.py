"""The `subclass` tracker: parameters become instances of a subclass of `torch.nn.Parameter`.

The object stays the same, so ties, hooks and the optimizers that hold it stay too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import _foreach_supported_types

Assigned = Callable[[torch.nn.Parameter], None]

_TOLD = frozenset(("data", "grad", "requires_grad"))


class TrackedParameter(torch.nn.Parameter):
    """A parameter that tells when one of its attributes is assigned."""

    # Set while installed; a class attribute, because instances must not hold the recorder alive.
    on_assignment: Assigned | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _TOLD and (tell := TrackedParameter.on_assignment) is not None:
            tell(self)

    def __repr__(self) -> str:  # type: ignore[override]  # as torch.nn.Parameter has it
        """Print as `torch.nn.Parameter` does, whose tensor is printed as a plain one."""
        plain = self.detach()
        return f"Parameter containing:\n{plain.requires_grad_() if self.requires_grad else plain}"

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.nn.Parameter:
        """Copy as `torch.nn.Parameter` does; the copy is tracked when it gets a name."""
        if id(self) not in memo:
            data = self.data.clone(memory_format=torch.preserve_format)
            memo[id(self)] = torch.nn.Parameter(data, self.requires_grad)
        copied: torch.nn.Parameter = memo[id(self)]
        return copied


# torch.save and the compiler look classes up by name, and find the class that this stands for.
TrackedParameter.__module__ = torch.nn.Parameter.__module__
TrackedParameter.__name__ = torch.nn.Parameter.__name__
TrackedParameter.__qualname__ = torch.nn.Parameter.__qualname__


class ParameterPatches:
    """Makes parameters tracked ones, and lets torch treat them like any other."""

    def __init__(self, on_assignment: Assigned) -> None:
        self._on_assignment = on_assignment
        self._original_new: Any = None
        self._converted: dict[int, weakref.ref[torch.nn.Parameter]] = {}

    def convert(self, parameter: torch.nn.Parameter) -> None:
        """Make a plain parameter a tracked one, in place."""
        if type(parameter) is torch.nn.Parameter:
            parameter.__class__ = TrackedParameter
            self._converted[id(parameter)] = weakref.ref(parameter)

    def install(self) -> None:
        """Let torch take tracked parameters for parameters; may be called twice."""
        if self._original_new is not None:
            return
        self._original_new = vars(torch.nn.Parameter)["__new__"]
        original = torch.nn.Parameter.__new__

        def new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:  # noqa: FBT001, FBT002  torch's signature
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
        for reference in self._converted.values():
            parameter = reference()
            if parameter is not None and type(parameter) is TrackedParameter:
                parameter.__class__ = torch.nn.Parameter  # type: ignore[assignment]
        self._converted.clear()
