"""Learns invariants from the traces of good training runs."""

from traincheck_infer.__about__ import __version__

__all__ = ["__version__"]
