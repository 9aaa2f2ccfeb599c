"""Which process this is, which groups of ranks it belongs to, and which processes it starts."""
