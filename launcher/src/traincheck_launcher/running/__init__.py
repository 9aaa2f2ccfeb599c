"""One collection: runs the program."""
