"""Comparing two runs of what should be the same program: where they part, and how it spreads."""
