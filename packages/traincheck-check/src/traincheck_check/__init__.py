"""Checks the trace of a training run against invariants."""

from traincheck_check.__about__ import __version__

__all__ = ["__version__"]
