"""What can be done with invariants between learning and checking them."""
