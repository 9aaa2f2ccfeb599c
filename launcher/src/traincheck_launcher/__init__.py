"""TrainCheck."""
