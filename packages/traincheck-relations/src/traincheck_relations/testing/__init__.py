"""Builds small traces, for the tests of relations and of plugins."""
