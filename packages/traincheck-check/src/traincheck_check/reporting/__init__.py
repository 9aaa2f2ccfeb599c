"""Reporting: what was found out, told where people look."""
