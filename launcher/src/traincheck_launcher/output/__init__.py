"""What lies in the output folder."""
