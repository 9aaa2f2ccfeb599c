"""The command `traincheck invariants`, a module for each of its subcommands."""
