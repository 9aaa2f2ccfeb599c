"""The command `traincheck-schema`, which is also `traincheck schema`."""
