"""Runs the program as it would run alone, with the marks put into what it imports."""
