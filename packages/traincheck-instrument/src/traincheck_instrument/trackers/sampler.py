"""The `sampler` tracker: nothing is done to a model, which is looked at after optimizer steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class SamplerTracker:
    """Notices nothing between the looks. When to look is said by `Wanted.phases`."""

    def install(self) -> None:
        """Do nothing."""

    def uninstall(self) -> None:
        """Do nothing."""

    def adopt(self, model: torch.nn.Module, name: str) -> None:
        """Leave the model as it is."""

    def convert(self, parameter: torch.nn.Parameter) -> None:
        """Leave the parameter as it is."""

    def rest(self) -> None:
        """Do nothing."""

    def wake(self) -> None:
        """Do nothing."""

    def release(self, tensor: torch.Tensor) -> bool:
        """Know no tensor."""
        del tensor
        return False
