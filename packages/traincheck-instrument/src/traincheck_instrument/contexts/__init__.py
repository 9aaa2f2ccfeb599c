"""What is active around a call: context managers, modes, and what the program tells itself."""
