"""Writes records to disk, off the hot path."""
