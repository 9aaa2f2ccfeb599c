"""Checks the trace of a training run against invariants."""
