"""Where a run that is checked while it goes on waits for the verdict, and stops."""
