"""Joins all that reports, and makes records of it: calls, faults, the time that it takes."""
