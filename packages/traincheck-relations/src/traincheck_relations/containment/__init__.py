"""What a call always contains: other calls, and changes of variables."""
