"""The long options of torchrun that are passed on to it; a test compares them with its own.

Importing torch to ask it would take seconds, also for `--help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping


@attrs.frozen
class TorchrunOption:
    """An option of torchrun, which also takes it with underscores."""

    name: str  # as `nproc-per-node`
    metavar: str | None = None  # None: it takes no value
    help: str | None = None  # None: torchrun --help tells it

    @property
    def key(self) -> str:
        """The name of its value here."""
        return self.name.replace("-", "_")


TORCHRUN_OPTIONS = (
    TorchrunOption("nproc-per-node", "N", "Ranks on this machine: a number, or auto, cpu, gpu."),
    TorchrunOption("nnodes", "N", "Machines: a number, or least:most."),
    TorchrunOption("node-rank", "N", "Which of the machines this one is, from 0."),
    TorchrunOption("master-addr", "HOST", "The machine of node rank 0."),
    TorchrunOption("master-port", "PORT", "A port that is free there."),
    TorchrunOption("standalone", help="One machine, and a port that is free."),
    TorchrunOption("rdzv-backend", "NAME", "How the machines meet: static or c10d."),
    TorchrunOption("rdzv-endpoint", "HOST:PORT", "Where they meet."),
    TorchrunOption("rdzv-id", "ID", "The name of the job, the same on all machines."),
    TorchrunOption("rdzv-conf", "CONF"),
    TorchrunOption("max-restarts", "N", "How often the ranks are started again if one fails."),
    TorchrunOption("monitor-interval", "SECONDS"),
    TorchrunOption("start-method", "METHOD"),
    TorchrunOption("event-log-handler", "NAME"),
    TorchrunOption("role", "NAME"),
    TorchrunOption("log-dir", "DIR", "Where torchrun puts its own logs of ranks."),
    TorchrunOption("redirects", "STREAMS"),
    TorchrunOption("tee", "STREAMS"),
    TorchrunOption("local-ranks-filter", "RANKS"),
    TorchrunOption("duplicate-stdout-filters", "FILTERS"),
    TorchrunOption("duplicate-stderr-filters", "FILTERS"),
    TorchrunOption("local-addr", "ADDRESS"),
    TorchrunOption("logs-specs", "NAME"),
    TorchrunOption("numa-binding", "HOW"),
    TorchrunOption("signals-to-handle", "SIGNALS"),
    TorchrunOption("shutdown-timeout", "SECONDS"),
    TorchrunOption("virtual-local-rank"),
)


def taken_out(values: MutableMapping[str, Any]) -> Iterator[str]:
    """Remove the options of torchrun from `values`, and yield them as torchrun is given them."""
    for option in TORCHRUN_OPTIONS:
        value = values.pop(option.key, None)
        if option.metavar is None:
            if value:
                yield f"--{option.name}"
        elif value is not None:
            yield f"--{option.name}={value}"
