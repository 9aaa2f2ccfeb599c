"""The commands. What they do is imported when they run."""
