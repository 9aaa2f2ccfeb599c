"""Where a run stands: its steps, stages and evaluation passes, and which of them are recorded."""
