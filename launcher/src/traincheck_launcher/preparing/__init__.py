"""What is found out before anything runs."""
