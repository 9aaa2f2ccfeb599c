"""Wrappers around the public API: what there is to wrap, how, and putting them in place."""
