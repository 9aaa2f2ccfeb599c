"""The `subclass` tracker: parameters become instances of a subclass of `torch.nn.Parameter`.

The object stays the same, so ties, hooks and the optimizers that hold it stay too.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import reduce_tensor
from torch.optim.optimizer import _foreach_supported_types

if TYPE_CHECKING:
    from traincheck_instrument.trackers.noticing import Noticing

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


class SubclassTracker:
    """Makes parameters tracked ones, and lets torch treat them like any other.

    In steps that are not recorded they are plain ones: for every operation on an instance of a
    subclass torch asks what that class thinks of it, which was 5% of the step of a small
    transformer.
    """

    def __init__(self, noticing: Noticing) -> None:
        self._noticing = noticing
        self._replaced_new: tuple[Any, Any] | None = None  # what was there, and what is
        self._known: dict[int, weakref.ref[torch.nn.Parameter]] = {}
        self._is_resting = False

    def adopt(self, model: torch.nn.Module, name: str) -> None:
        """Leave the model as it is."""

    def convert(self, parameter: torch.nn.Parameter) -> None:
        """Make a plain parameter a tracked one, in place."""
        if type(parameter) is torch.nn.Parameter:
            key, known = id(parameter), self._known
            known[key] = weakref.ref(parameter, lambda _: known.pop(key, None))
            if not self._is_resting:
                _set_class(parameter, TrackedParameter)

    def release(self, tensor: torch.Tensor) -> bool:
        """Make a parameter a plain one that nothing here refers to."""
        if self._known.pop(id(tensor), None) is None:
            return False
        if type(tensor) is TrackedParameter:
            _set_class(tensor, torch.nn.Parameter)
        return True

    def rest(self) -> None:
        """Make the parameters plain ones for a while."""
        if not _has_compiled():
            self._is_resting = True
            self._make_all(torch.nn.Parameter)

    def wake(self) -> None:
        """Make the parameters tracked ones again."""
        if self._is_resting and not _has_compiled():
            self._is_resting = False
            self._make_all(TrackedParameter)

    def install(self) -> None:
        """Let torch take tracked parameters for parameters; may be called twice."""
        if self._replaced_new is not None:
            return
        original = torch.nn.Parameter.__new__

        def new_parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:  # noqa: FBT001, FBT002  torch's signature
            # torch refuses instances of a subclass as data, other than Parameter itself.
            if isinstance(data, TrackedParameter):
                data = data.detach()
            return original(cls, data, requires_grad)

        replaced = vars(torch.nn.Parameter)["__new__"]
        torch.nn.Parameter.__new__ = new_parameter  # type: ignore[method-assign]
        self._replaced_new = replaced, vars(torch.nn.Parameter)["__new__"]
        # Optimizers take their foreach implementation for the listed types only.
        _foreach_supported_types.append(TrackedParameter)
        ForkingPickler.register(TrackedParameter, _reduce)
        TrackedParameter.on_assignment = self._noticing.assigned

    def uninstall(self) -> None:
        """Put back what was there, if nobody replaced it since; may be called twice."""
        if self._replaced_new is None:
            return
        original, ours = self._replaced_new
        if vars(torch.nn.Parameter)["__new__"] is ours:
            torch.nn.Parameter.__new__ = original  # type: ignore[method-assign]
        self._replaced_new = None
        _foreach_supported_types.remove(TrackedParameter)
        reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]  # noqa: SLF001  no public way
        reducers.pop(TrackedParameter, None)
        TrackedParameter.on_assignment = None
        self._make_all(torch.nn.Parameter)
        self._known.clear()

    def _make_all(self, cls: type[torch.nn.Parameter]) -> None:
        for parameter in self._parameters():
            if type(parameter) in (torch.nn.Parameter, TrackedParameter):
                _set_class(parameter, cls)

    def _parameters(self) -> Iterator[torch.nn.Parameter]:
        for reference in list(self._known.values()):
            if (parameter := reference()) is not None:
                yield parameter


def _reduce(parameter: torch.Tensor) -> tuple[Any, ...]:
    """Send a parameter to another process as what it was: in shared memory, not as a copy."""
    rebuild, arguments = reduce_tensor(parameter)  # type: ignore[no-untyped-call]
    plain = (torch.nn.Parameter if one is TrackedParameter else one for one in arguments)
    return rebuild, tuple(plain)


def _set_class(parameter: torch.Tensor, cls: type[torch.nn.Parameter]) -> None:
    parameter.__class__ = cls


def _has_compiled() -> bool:
    """Whether torch.compile was at work: for another class it would compile all over again."""
    compiler = sys.modules.get("torch._dynamo.utils")
    return compiler is not None and bool(compiler.counters.get("frames"))
