"""Config files: how they are read, and what their keys mean to the options of a command."""
