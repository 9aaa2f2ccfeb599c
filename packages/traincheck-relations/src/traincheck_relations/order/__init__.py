"""The order and number of calls in a training step."""
