"""Judging a run: streams it once through the monitors of all invariants."""
