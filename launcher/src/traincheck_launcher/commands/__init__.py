"""The commands: `traincheck-collect` and `traincheck example`."""
