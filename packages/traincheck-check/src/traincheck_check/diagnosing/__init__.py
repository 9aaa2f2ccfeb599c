"""Diagnosing: what was broken together, in which order to look at it, and why it may be."""
