"""Follows variables: which there are, which optimizer holds them, how their state changes."""
