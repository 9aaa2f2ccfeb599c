"""Which process this is: its rank, its host, the versions it runs."""

from __future__ import annotations

import os
import platform
import socket
import time
from importlib import metadata
from typing import Any

import torch

_MAIN, _WORKER = "main", "worker"


class Identity:
    """What the header says about this process. `torchrun` tells the rank in the environment."""

    def __init__(self) -> None:
        self.role = _MAIN
        self.rank = _from_environment("RANK", 0)
        self.local_rank = _from_environment("LOCAL_RANK", 0)
        self.world_size = _from_environment("WORLD_SIZE", 1)
        self.restart = _from_environment("TORCHELASTIC_RESTART_COUNT", 0)

    def become_worker(self) -> None:
        """Take note that this is a process forked from the one that trains."""
        self.role = _WORKER

    def fields(self) -> dict[str, Any]:
        """Return the fields of the header."""
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "role": self.role,
            "rank": self.rank,
            "local_rank": self.local_rank,
            "world_size": self.world_size,
            "restart": self.restart,
            "groups": {"world": list(range(self.world_size))},
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "traincheck-instrument": metadata.version("traincheck-instrument"),
            },
            "clock": {"wall_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()},
        }


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default
