"""The errors that a user of TrainCheck can meet, and the exit codes they lead to."""

from __future__ import annotations

EXIT_CLEAN = 0
EXIT_VIOLATIONS = 1
EXIT_UNUSABLE = 2
EXIT_INCOMPLETE = 3

DEBUG = "TRAINCHECK_DEBUG"  # environment variable: show the traceback of a fault of ours


class TraincheckError(Exception):
    """Input or arguments that cannot be used; the message says where and what to do."""


class ConfigError(TraincheckError):
    """An option, or a file that an option names, cannot be used."""


class TraceError(TraincheckError):
    """A trace cannot be read as the format says."""


class InvariantError(TraincheckError):
    """An invariant cannot be read or is not understood."""


class PluginError(TraincheckError):
    """An installed plugin failed to load or breaks its interface."""
