"""The documents of TrainCheck: traces, invariants, plans and results."""

from traincheck_trace_schema.__about__ import __version__
from traincheck_trace_schema.errors import (
    ConfigError,
    InvariantError,
    PluginError,
    TraceError,
    TraincheckError,
)

__all__ = [
    "ConfigError",
    "InvariantError",
    "PluginError",
    "TraceError",
    "TraincheckError",
    "__version__",
]
