"""Two training programs, one right and one with a silent bug, for `traincheck example`."""
