"""Which process this is: its rank, its host, the versions it runs."""

from __future__ import annotations

import os
import platform
import socket
import time
from importlib import metadata
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.process.groups import WORLD, fingerprint, read_place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_instrument.process.groups import Ranks
    from traincheck_instrument.process.meshes import Meshes

_MAIN, _WORKER = "main", "worker"


class Identity:
    """What the header says about this process.

    `torchrun` tells the rank in the environment; what torch.distributed says later holds.
    """

    def __init__(self) -> None:
        self.role = _MAIN
        self.rank = _from_environment("RANK", 0)
        self.local_rank = _from_environment("LOCAL_RANK", 0)
        self.world_size = _from_environment("WORLD_SIZE", 1)
        self._groups: Mapping[str, Ranks] = {WORLD: tuple(range(self.world_size))}
        self._node_rank = _told_number("GROUP_RANK")
        self.restart = _from_environment("TORCHELASTIC_RESTART_COUNT", 0)
        self._inherited: object = ()  # fingerprint of a job that another process joined
        self._read: object = None  # fingerprint of what was read last

    @property
    def is_worker(self) -> bool:
        """Whether this process was started by the one that trains."""
        return self.role == _WORKER

    def become_worker(self) -> None:
        """Take note that this process was started by the one that trains."""
        self.role = _WORKER
        self._inherited = fingerprint()

    def refresh(self, meshes: Meshes) -> bool:
        """Read rank and groups again if there are others; return whether the header differs.

        Cheap where nothing is new. A process that joins a job itself is a rank of it, whoever
        started it.
        """
        job, dimensions = fingerprint(), len(meshes.names)
        if job in ((), self._inherited) or (job, dimensions) == self._read:
            return False
        self._read = job, dimensions
        before = self._place()
        place = read_place(meshes.dimensions())
        self.role = _MAIN
        self.rank, self.world_size, self._groups = place.rank, place.world_size, place.groups
        self.local_rank = _from_environment("LOCAL_RANK", self.rank)
        return self._place() != before

    def _place(self) -> tuple[object, ...]:
        return self.role, self.rank, self.local_rank, self.world_size, self._groups

    def fields(self) -> dict[str, Any]:
        """Return the fields of the header."""
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "role": self.role,
            "rank": self.rank,
            "local_rank": self.local_rank,
            "world_size": self.world_size,
            **({} if self._node_rank is None else {"node_rank": self._node_rank}),
            "restart": self.restart,
            "groups": {name: list(ranks) for name, ranks in self._groups.items()},
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "traincheck-instrument": metadata.version("traincheck-instrument"),
            },
            "clock": {"wall_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()},
        }


def _from_environment(name: str, default: int) -> int:
    told = _told_number(name)
    return default if told is None else told


def _told_number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None
