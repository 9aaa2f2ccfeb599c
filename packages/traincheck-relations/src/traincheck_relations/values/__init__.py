"""What calls are given and return."""
