"""The variables of a program: which there are, what they are called, and looking at them."""
