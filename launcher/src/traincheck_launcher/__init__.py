"""Starts training programs under TrainCheck."""

from traincheck_launcher.__about__ import __version__

__all__ = ["__version__"]
