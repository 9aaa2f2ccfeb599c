"""What is said when the program has ended."""
