"""The trackers: what is done to a model so that changes of it are noticed between the looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from traincheck_instrument.trackers.parameter import SubclassTracker
from traincheck_instrument.trackers.proxy import ProxyTracker
from traincheck_instrument.trackers.sampler import SamplerTracker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from traincheck_instrument.settings import Tracker as TrackerName
    from traincheck_instrument.trackers.noticing import Noticing


class Tracker(Protocol):
    """Notices what a program does to its model. The looks find the changes, whatever it notices.

    All objects of the program stay the objects that they are.
    """

    def install(self) -> None:
        """Let torch take what is tracked for what it was; may be called twice."""

    def uninstall(self) -> None:
        """Put back what was there; may be called twice."""

    def adopt(self, model: torch.nn.Module, name: str) -> None:
        """Take note that a model is tracked under a name."""

    def convert(self, parameter: torch.nn.Parameter) -> None:
        """Take note that a parameter has become a variable."""

    def rest(self) -> None:
        """Cost nothing from now on: the steps that come are not recorded."""

    def wake(self) -> None:
        """Notice again."""

    def release(self, tensor: torch.Tensor) -> bool:
        """Forget a tensor, and say whether it was known: nothing of the tracker refers to it."""


def make_tracker(name: TrackerName | None, noticing: Noticing) -> Tracker:
    """Make the tracker that the settings name."""
    makers: Mapping[TrackerName, Callable[[Noticing], Tracker]] = {
        "subclass": SubclassTracker,
        "proxy": ProxyTracker,
    }
    return makers[name](noticing) if name is not None and name in makers else SamplerTracker()
