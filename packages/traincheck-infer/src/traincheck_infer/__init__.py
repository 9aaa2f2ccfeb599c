"""Learns invariants from the traces of good training runs."""
