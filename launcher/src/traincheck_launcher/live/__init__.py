"""The check that follows a run while it goes on, in a process of its own."""
