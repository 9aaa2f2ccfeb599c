"""The report: one file that a browser shows, without a script and without a network."""
